"""Sources of foreign skills, all within the same limits. Links, devices, paths that lead out, too many files and
archives that swell are refused before anything is kept. Raises `SilasError("import_refused")`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from apps.skills.enums import SkillSource
from apps.skills.imports import repository
from apps.skills.imports.errors import import_refused
from apps.skills.loader import MANIFEST, read_folder
from sandbox.archives.reader import BadArchive, Limits, Problem, read_entries
from sandbox.spec import is_safe_relative

MAX_ARCHIVE_BYTES, MAX_UNPACKED_BYTES, MAX_ENTRIES = 10_000_000, 50_000_000, 5_000
_LIMITS = Limits(MAX_ENTRIES, MAX_UNPACKED_BYTES)
# Any of these ends the import. Skipping a single entry would leave a skill that differs from what its author saw.
_WHY = {
    Problem.UNREADABLE: "The archive cannot be read.",
    Problem.TOO_MANY: "The archive contains too many files.",
    Problem.TOO_LARGE: "The archive's contents are too large.",
    Problem.NOT_PLAIN: "The archive contains a link, a device or an encrypted file.",
    Problem.PACKING: "The archive uses a compression that isn't supported.",
    Problem.TWICE: "The archive contains a file twice.",
}
_IGNORED = frozenset({".git", "__pycache__", "__MACOSX", "node_modules", ".DS_Store"})


@dataclass(frozen=True)
class Fetched:
    """The files below one SKILL.md, by their path from it. `called`: the name of their folder, if any."""

    files: dict[str, bytes]
    source: SkillSource
    uri: str = ""
    commit: str = ""
    called: str = ""


def from_folder(path: Path) -> Fetched:
    """Read a folder of this machine: for operators on the command line, never for what a request names."""
    return Fetched(read_folder(path), SkillSource.FOLDER, uri=path.name, called=path.name)


def from_archive(raw: bytes, *, name: str = "", folder: str = "") -> Fetched:
    """Read a zip or tar (plain or gz) that holds one skill, or several of which `folder` names one."""
    if len(raw) > MAX_ARCHIVE_BYTES:
        raise import_refused("The archive is too large.")
    files, called = _skill_in(_unpack(raw), folder)
    return Fetched(files, SkillSource.ARCHIVE, uri=name[:300], called=called)


def from_git(url: str, *, folder: str = "", ref: str = "") -> Fetched:
    """Fetch the newest commit of a repository's branch or tag, over https from a public host. Blocking, up to a minute.
    What was fetched (`repository`) is read as an archive, like any other."""
    commit, raw = repository.fetch(url, ref, most_bytes=MAX_UNPACKED_BYTES)
    files, called = _skill_in(_unpack(raw), folder)
    named = called or PurePosixPath(urlsplit(url).path).name.removesuffix(".git")
    return Fetched(
        files, SkillSource.GIT, uri=f"{url}{f'#{folder}' if folder else ''}"[:300], commit=commit, called=named
    )


def _unpack(raw: bytes) -> dict[str, bytes]:
    try:
        entries = read_entries(raw, _LIMITS)
    except BadArchive as bad:
        raise import_refused(_WHY[bad.problem]) from None
    files: dict[str, bytes] = {}
    for entry in entries:
        path = entry.name.removeprefix("./")
        if path.endswith("/") or not path:
            continue
        if not is_safe_relative(path) or "\\" in path:
            raise import_refused("A path in the archive points outside of it.")
        if path in files:
            raise import_refused(_WHY[Problem.TWICE])
        files[path] = entry.content
    return files


def _skill_in(files: dict[str, bytes], folder: str) -> tuple[dict[str, bytes], str]:
    """Return the files below the one SKILL.md that is meant, and the name of their folder."""
    roots = sorted(str(PurePosixPath(path).parent) for path in files if PurePosixPath(path).name == MANIFEST)
    wanted = folder.strip("/") if folder else ""
    matching = (
        [root for root in roots if root == wanted or root.endswith(f"/{wanted}")] if wanted else _outermost(roots)
    )
    if len(matching) != 1:
        listed = {"folders": roots[:50]}
        raise import_refused(
            "The archive contains several skills. Choose one." if roots else "It contains no SKILL.md.", **listed
        )
    root = "" if matching[0] == "." else f"{matching[0]}/"
    below = {path[len(root) :]: content for path, content in files.items() if path.startswith(root)}
    kept = {path: content for path, content in below.items() if not _IGNORED & set(PurePosixPath(path).parts)}
    return kept, PurePosixPath(root).name


def _outermost(roots: list[str]) -> list[str]:
    return ["."] if "." in roots else roots
