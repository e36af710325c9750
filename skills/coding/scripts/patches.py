"""Reads unified diffs and applies them exactly. Shared by the scripts of this skill and by its check."""

import re
from pathlib import PurePosixPath

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


class BadPatch(Exception):
    """A sentence for whoever wrote the patch."""


def read_patch(text):
    """[(path, is_new, hunks)]; a hunk is (first line of the old file, lines with their mark)."""
    lines, files = text.splitlines(), []
    at = 0
    while at < len(lines):
        if lines[at].startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ "):
            old, new = _path(lines[at][4:]), _path(lines[at + 1][4:])
            hunks, at = _hunks(lines, at + 2)
            if not hunks or (old is None and new is None):
                raise BadPatch("The patch names a file and changes nothing of it.")
            files.append((new or old, old is None, new is None, hunks))
        else:
            at += 1
    if not files:
        raise BadPatch("This is no unified diff.")
    if len({path for path, *_ in files}) != len(files):
        raise BadPatch("The patch changes one file twice.")
    return files


def patched(before, hunks):
    """The text after the hunks. Raises BadPatch where a line is not what the patch expects."""
    old, new, at = before.splitlines(), [], 0
    for start, marked in hunks:
        begin = max(start - 1, 0)
        if begin < at or begin > len(old):
            raise BadPatch("The patch does not fit the file.")
        new += old[at:begin]
        at = begin
        for line in marked:
            mark, text = line[:1], line[1:]
            if mark in (" ", "-"):
                if at >= len(old) or old[at] != text:
                    raise BadPatch(f"Line {at + 1} of the file is not what the patch expects.")
                at += 1
            if mark in (" ", "+"):
                new.append(text)
    new += old[at:]
    return "\n".join(new) + ("\n" if new else "")


def _hunks(lines, at):
    hunks = []
    while at < len(lines) and (header := _HUNK.match(lines[at])):
        before, after = int(header[2] or 1), int(header[4] or 1)
        marked, at = [], at + 1
        while before or after:
            line = lines[at] if at < len(lines) else None
            if line is None or line[:1] not in (" ", "-", "+", ""):
                raise BadPatch("A part of the patch is shorter than it says.")
            marked.append(line or " ")
            before -= marked[-1][0] in " -"
            after -= marked[-1][0] in " +"
            if min(before, after) < 0:
                raise BadPatch("A part of the patch is longer than it says.")
            at += 1
        while at < len(lines) and lines[at].startswith("\\"):
            at += 1
        hunks.append((int(header[1]), marked))
    return hunks, at


def _path(told):
    path = told.split("\t")[0].strip()
    if path == "/dev/null":
        return None
    path = path[2:] if path[:2] in ("a/", "b/") else path
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or str(PurePosixPath(path)) != path:
        raise BadPatch("The patch names a file outside of the work.")
    return path
