"""Where do the files of a foreign skill come from? Every source within the same limits; links, devices, paths that lead
out, too many files and archives that swell are refused before anything is kept. Raises `SilasError("import_refused")`.
"""

from __future__ import annotations

import io
import os
import resource
import signal
import subprocess
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from django.conf import settings

from apps.skills.enums import SkillSource
from apps.skills.loader import MANIFEST, read_folder
from kernel.errors import SilasError
from kernel.outside import host_of, is_outside_url
from kernel.sandbox.spec import is_safe_relative

MAX_ARCHIVE_BYTES, MAX_UNPACKED_BYTES, MAX_ENTRIES = 10_000_000, 50_000_000, 5_000
MAX_GIT_BYTES, GIT_SECONDS = 100_000_000, 60
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
    """The newest commit of a repository's branch or tag, over https from a public host. Blocking, up to a minute.

    git gets no configuration, hooks, submodules, credentials or redirects, and writes no working copy: what it fetched
    is read as an archive, like any other.
    """
    _require_public(url)
    if ref and (
        ref.startswith("-") or not ref.replace("/", "").replace(".", "").replace("-", "").replace("_", "").isalnum()
    ):
        raise refused("That is no name of a branch or tag.")
    with tempfile.TemporaryDirectory(prefix="silas-git-") as home:
        branch = ["--branch", ref] if ref else []
        place = str(Path(home) / "repository")
        _git(home, "clone", *_CLONE, *branch, "--", url, place)
        commit = _git(home, "-C", place, "rev-parse", "HEAD").decode().strip()
        raw = _git(home, "-C", place, "archive", "--format=tar", "HEAD", limit=MAX_UNPACKED_BYTES)
    files, called = _skill_in(_collected(_untarred(raw)), folder)
    named = called or PurePosixPath(urlsplit(url).path).name.removesuffix(".git")
    return Fetched(
        files, SkillSource.GIT, uri=f"{url}{f'#{folder}' if folder else ''}"[:300], commit=commit, called=named
    )


def refused(message: str, **extra: object) -> SilasError:
    return SilasError("import_refused", message, extra=extra, status=422)


# -- archives ------------------------------------------------------------------------------------------------------


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
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
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
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError) as error:
        raise refused("The archive cannot be read.") from error


def _require_plain_zip(info: zipfile.ZipInfo, left: int) -> None:
    kind = (info.external_attr >> 16) & 0o170000
    if kind not in (0, 0o100000) or info.flag_bits & 0x1:
        raise refused("The archive holds a link, a device or something encrypted.")
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


def _untarred(raw: bytes) -> Iterator[tuple[str, bytes]]:
    try:
        with tarfile.open(fileobj=io.BytesIO(raw), mode="r:") as archive:
            for number, member in enumerate(archive):
                _require_few(number)
                if member.isdir():
                    continue
                if not member.isreg() or member.issparse():
                    raise refused("The archive holds a link or a device.")
                file = archive.extractfile(member)
                yield member.name, file.read() if file else b""
    except (tarfile.TarError, ValueError, EOFError, OSError, RecursionError) as error:
        raise refused("The archive cannot be read.") from error


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


# -- git -----------------------------------------------------------------------------------------------------------

_CLONE = (
    "--depth=1",
    "--single-branch",
    "--no-tags",
    "--no-checkout",
    "--no-recurse-submodules",
    "--quiet",
    "--template=",
)
_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.symlinks": "false",
    "core.attributesFile": "/dev/null",
    "credential.helper": "",
    "http.followRedirects": "false",
    "http.proxy": "",
    "protocol.allow": "never",
    "submodule.recurse": "false",
    "transfer.fsckObjects": "true",
}


def _require_public(url: str) -> None:
    schemes = settings.SKILL_GIT_SCHEMES
    if urlsplit(url).scheme not in schemes or "@" in urlsplit(url).netloc:
        raise refused("Repositories are fetched over https, without a name or password in the address.")
    if urlsplit(url).scheme == "https" and not (host_of(url, schemes=("https",)) and is_outside_url(url)):
        raise refused("This address is not one of the public internet.")


def _git(home: str, *arguments: str, limit: int = 1_000_000) -> bytes:
    """Run git and give what it prints; killed with its children when it takes too long."""
    schemes = settings.SKILL_GIT_SCHEMES
    given = [f"{name}={value}" for name, value in _SETTINGS.items()]
    given += [f"protocol.{scheme}.allow=always" for scheme in schemes]
    command = ["git", *(word for one in given for word in ("-c", one)), *arguments]
    try:
        process = subprocess.Popen(
            command,
            env=_bare_environment(home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_bounded,
        )
    except OSError as error:
        raise SilasError("git_missing", "There is no git on this machine.", status=503) from error
    try:
        printed, _ = process.communicate(timeout=GIT_SECONDS)
    except subprocess.TimeoutExpired:
        raise refused("Fetching the repository took too long.") from None
    finally:
        _end(process)
    if process.returncode or len(printed) > limit:
        raise refused("The repository cannot be fetched.")
    return printed


def _bare_environment(home: str) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": home,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "/bin/false",
        "GIT_ALLOW_PROTOCOL": ":".join(settings.SKILL_GIT_SCHEMES),
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_ATTR_NOSYSTEM": "1",
    }


def _bounded() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_GIT_BYTES, MAX_GIT_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (GIT_SECONDS, GIT_SECONDS))


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
