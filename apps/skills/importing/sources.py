"""Where do the files of a foreign skill come from? Every source within the same limits; links, devices, paths that lead
out, too many files and archives that swell are refused before anything is kept. Raises `SilasError("import_refused")`.
"""

from __future__ import annotations

import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from apps.skills import zips
from apps.skills.enums import SkillSource
from apps.skills.importing import repository
from apps.skills.importing.refusing import refused
from apps.skills.loader import MANIFEST, read_folder
from kernel.sandbox.spec import is_safe_relative

MAX_ARCHIVE_BYTES, MAX_UNPACKED_BYTES, MAX_ENTRIES = 10_000_000, 50_000_000, 5_000
# Of a tar: how long what stands before a file (a long name, attributes) may be; reading it takes its square.
_MAX_HEADER_BYTES = 2_000
_HEADERS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
_IGNORED = frozenset({".git", "__pycache__", "__MACOSX", "node_modules", ".DS_Store"})


@dataclass(frozen=True)
class Fetched:
    """The files below one SKILL.md, by their path from it. `called`: the name of their folder, where there is one."""

    files: dict[str, bytes]
    source: SkillSource
    uri: str = ""
    commit: str = ""
    called: str = ""
    ignored: tuple[str, ...] = field(default=())


def from_folder(path: Path) -> Fetched:
    """A folder of this machine: for operators on the command line, never for what a request names."""
    return Fetched(read_folder(path), SkillSource.FOLDER, uri=path.name, called=path.name)


def from_archive(raw: bytes, *, name: str = "", folder: str = "") -> Fetched:
    """A zip or tar (plain or gz) that holds one skill, or several of which `folder` names one."""
    if len(raw) > MAX_ARCHIVE_BYTES:
        raise refused("The archive is too large.")
    entries = _unzipped(raw) if raw.startswith(b"PK") else _untarred(_gunzipped(raw))
    files, called = _skill_in(_collected(entries), folder)
    return Fetched(files, SkillSource.ARCHIVE, uri=name[:300], called=called)


def from_git(url: str, *, folder: str = "", ref: str = "") -> Fetched:
    """The newest commit of a repository's branch or tag, over https from a public host. Blocking, up to a minute. What
    was fetched (`repository`) is read as an archive, like any other."""
    commit, raw = repository.fetch(url, ref, most_bytes=MAX_UNPACKED_BYTES)
    files, called = _skill_in(_collected(_untarred(raw)), folder)
    named = called or PurePosixPath(urlsplit(url).path).name.removesuffix(".git")
    return Fetched(
        files, SkillSource.GIT, uri=f"{url}{f'#{folder}' if folder else ''}"[:300], commit=commit, called=named
    )


def _collected(entries: Iterator[tuple[str, bytes]]) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    total = 0
    for name, content in entries:
        path = name.removeprefix("./")
        if not is_safe_relative(path) or "\\" in path:
            raise refused("A path in the archive leads out of it.")
        if path in files:
            raise refused("The archive holds a file twice.")
        total += len(content)
        if len(files) >= MAX_ENTRIES or total > MAX_UNPACKED_BYTES:
            raise refused("The archive holds too much.")
        files[path] = content
    return files


def _unzipped(raw: bytes) -> Iterator[tuple[str, bytes]]:
    with zips.opened(raw, refused("The archive cannot be read.")) as archive:
        _require_few(len(archive.infolist()))
        left = MAX_UNPACKED_BYTES
        for info in archive.infolist():
            if info.is_dir():
                continue
            _require_plain_zip(info, left)
            with archive.open(info) as file:
                content = file.read(left + 1)  # what the header says of the size is only what it says
            left -= len(content)
            if left < 0:
                raise refused("The archive holds too much.")
            yield info.filename, content


def _require_plain_zip(info: zipfile.ZipInfo, left: int) -> None:
    if not zips.is_plain(info):
        raise refused("The archive holds a link, a device or something encrypted.")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise refused("The archive is packed in a way that is not read here.")  # the others unpack without a limit
    if info.file_size > left:
        raise refused("The archive holds too much.")


def _gunzipped(raw: bytes) -> bytes:
    if not raw.startswith(b"\x1f\x8b"):
        return raw
    try:
        stream = zlib.decompressobj(wbits=31)
        plain = stream.decompress(raw, MAX_UNPACKED_BYTES + 1)
    except zlib.error as error:
        raise refused("The archive cannot be read.") from error
    if len(plain) > MAX_UNPACKED_BYTES:
        raise refused("The archive holds too much.")
    return plain


class _Member(tarfile.TarInfo):
    """A file of a tar. What its header says of sizes is looked at before anything is read by it."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Member:
        member = super().frombuf(buf, encoding, errors)
        _require_size(member.size, most=_MAX_HEADER_BYTES if member.type in _HEADERS else MAX_UNPACKED_BYTES)
        return member


def _untarred(raw: bytes) -> Iterator[tuple[str, bytes]]:
    try:
        with tarfile.open(fileobj=io.BytesIO(raw), mode="r:", tarinfo=_Member) as archive:
            for number, member in enumerate(archive):
                _require_few(number)
                if member.isdir():
                    continue
                if not member.isreg() or member.issparse():
                    raise refused("The archive holds a link or a device.")
                _require_size(member.size, most=MAX_UNPACKED_BYTES)  # attributes may have said another one
                file = archive.extractfile(member)
                yield member.name, file.read() if file else b""
    except (tarfile.TarError, ValueError, EOFError, OSError, RecursionError) as error:
        raise refused("The archive cannot be read.") from error


def _require_size(size: int, *, most: int) -> None:
    if not 0 <= size <= most:
        raise refused("The archive says that it holds more than it may.")


def _require_few(count: int) -> None:
    if count > MAX_ENTRIES:
        raise refused("The archive holds too many files.")


def _skill_in(files: dict[str, bytes], folder: str) -> tuple[dict[str, bytes], str]:
    """The files below the one SKILL.md that is meant, and what their folder is called."""
    roots = sorted(str(PurePosixPath(path).parent) for path in files if PurePosixPath(path).name == MANIFEST)
    wanted = folder.strip("/") if folder else ""
    fitting = [root for root in roots if root == wanted or root.endswith(f"/{wanted}")] if wanted else _outermost(roots)
    if len(fitting) != 1:
        listed = {"folders": roots[:50]}
        raise refused("Say which of its skills." if roots else "There is no SKILL.md in it.", **listed)
    root = "" if fitting[0] == "." else f"{fitting[0]}/"
    found = {path[len(root) :]: content for path, content in files.items() if path.startswith(root)}
    kept = {path: content for path, content in found.items() if not _IGNORED & set(PurePosixPath(path).parts)}
    return kept, PurePosixPath(root).name


def _outermost(roots: list[str]) -> list[str]:
    return ["."] if "." in roots else roots
