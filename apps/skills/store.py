"""Folders of versions on this machine: unpacked once under their content hash, read-only, from the database.

A folder is checked against its hash before a process first uses it, and unpacked again when it does not match: the
database is the truth.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from django.conf import settings

from apps.skills import rules
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError

Fetch = Callable[[], Mapping[str, bytes]]
_checked: set[str] = set()
_lock = threading.Lock()


def unpack(digest: str, fetch: Fetch) -> Path:
    """Return the folder of the version with this digest. `fetch` reads its files, and is called only when they are
    needed.

    Raises `SilasError("skill_damaged")` when what is fetched has another hash.
    """
    path = Path(settings.VAR_DIR) / "skills" / digest
    with _lock:
        if digest in _checked and path.is_dir():
            return path
        if not (path.is_dir() and rules.content_digest(_contents(path)) == digest):
            _unpack_files(path, digest, fetch())
        _checked.add(digest)
    return path


def _unpack_files(path: Path, digest: str, files: Mapping[str, bytes]) -> None:
    if rules.content_digest(files) != digest:
        raise SilasError(ErrorCode.SKILL_DAMAGED)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{digest[:12]}-", dir=path.parent))
    try:
        for name, content in files.items():
            file = fresh / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            file.chmod(0o444)
        for root, _, _ in os.walk(fresh):
            os.chmod(root, 0o555)  # noqa: S103 - the sandbox's own user must read it
        _replace(fresh, path)
    finally:
        _remove(fresh)


def _replace(fresh: Path, path: Path) -> None:
    """Put the fresh folder in place; another process may have been first, and a damaged folder is removed."""
    fresh.chmod(0o755)
    if path.is_dir():
        _remove(path)
    try:
        fresh.rename(path)
    except OSError:
        if not path.is_dir():
            raise
    path.chmod(0o555)


def _remove(folder: Path) -> None:
    if folder.is_dir():
        for root, _, _ in os.walk(folder):
            os.chmod(root, 0o755)  # noqa: S103 - about to be deleted
        shutil.rmtree(folder)


def _contents(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file() and not file.is_symlink())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}
