"""Differences between two versions of a skill, file by file and line by line. Pure; bounded for a page."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

MOST_LINES, MOST_FILES, LONGEST_LINE = 400, 100, 400
_CONTEXT = 3


@dataclass(frozen=True)
class FileChange:
    """The change of one file. `kind`: new, removed or changed. `lines`: (mark, text), the mark "+", "-", " " or "@" for
    a gap; `cut`: there are more. A binary file has none."""

    path: str
    kind: str
    lines: tuple[tuple[str, str], ...] = ()
    cut: bool = False
    is_text: bool = True


def compare(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> tuple[FileChange, ...]:
    """Return the changes in the order of paths, at most `MOST_FILES`."""
    paths = [path for path in sorted({*before, *after}) if before.get(path) != after.get(path)]
    return tuple(_change(path, before.get(path), after.get(path)) for path in paths[:MOST_FILES])


def text_of(content: bytes) -> str | None:
    """Return the text, or None for a binary file."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _change(path: str, before: bytes | None, after: bytes | None) -> FileChange:
    kind = "new" if before is None else "removed" if after is None else "changed"
    old, new = text_of(before or b""), text_of(after or b"")
    if old is None or new is None:
        return FileChange(path, kind, is_text=False)
    diff = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=_CONTEXT)
    lines = [
        (line[:1], "" if line[:1] == "@" else line[1 : LONGEST_LINE + 1])
        for number, line in enumerate(diff)
        if number > 1
    ]
    return FileChange(path, kind, tuple(lines[:MOST_LINES]), cut=len(lines) > MOST_LINES)
