"""Store visitors' files by tenant and digest, and keep files and rows consistent.

Bytes are written under a temporary name, synced, renamed, then named by a row: if the process dies, bytes may be
without a row (`sweep` deletes them later), never a row without its bytes. Writers and deleters hold the digest's
advisory lock in the database. Nothing here is served by a web server.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from uuid import UUID, uuid4

from django.conf import settings
from django.db import connection, transaction

from apps.visitors.models import VisitorFile
from kernel.tenancy import current_tenant_id, for_each_tenant, tenant_scope

ORPHAN_SECONDS = 3600
_INCOMING = "incoming"


class TooLarge(Exception):
    """More bytes came than may."""


def receive(chunks: Iterable[bytes], *, most: int) -> tuple[Path, str, int]:
    """Write what comes to a file of its own, on the disk when this returns: where, its digest, its size. Outside of a
    transaction. Raises `TooLarge`, and keeps nothing then."""
    folder = _root() / _INCOMING
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / uuid4().hex
    try:
        digest, size = _write(path, chunks, most)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path, digest, size


def _write(path: Path, chunks: Iterable[bytes], most: int) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        for chunk in chunks:
            size += len(chunk)
            if size > most:
                raise TooLarge
            digest.update(chunk)
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest(), size


def put(received: Path, digest: str) -> None:
    """Give received bytes their place. Inside the transaction that writes their row, before it does."""
    _lock(digest)
    place = place_of(current_tenant_id(), digest)
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.replace(received, place)
    _sync(place.parent)


def place_of(tenant_id: UUID, digest: str) -> Path:
    return _root() / tenant_id.hex / digest[:2] / digest


def let_go(digests: Iterable[str]) -> None:
    """Delete bytes whose last row goes with this transaction, once it is committed. What a crash leaves is swept."""
    tenant_id, gone = current_tenant_id(), sorted(set(digests))

    def delete() -> None:
        for digest in gone:
            with tenant_scope(tenant_id):
                _delete_unnamed(tenant_id, digest)

    transaction.on_commit(delete, robust=True)


def sweep() -> int:
    """Delete bytes that have had no row for an hour, of every tenant that has bytes; how many. Outside of any scope."""
    old = time.time() - ORPHAN_SECONDS
    deleted = sum(_delete_old(path, old) for path in _files(_root() / _INCOMING))
    return deleted + for_each_tenant(_tenants_with_bytes(), _sweep_tenant)


def _tenants_with_bytes() -> Iterator[UUID]:
    for folder in _root().iterdir() if _root().is_dir() else ():
        with suppress(ValueError):
            yield UUID(hex=folder.name)


def _sweep_tenant(tenant_id: UUID) -> int:
    old = time.time() - ORPHAN_SECONDS
    aged = {path.name for path in _files(_root() / tenant_id.hex) if _age(path) < old}
    if not aged:
        return 0
    with tenant_scope(tenant_id):
        aged -= set(VisitorFile.objects.filter(digest__in=aged).values_list("digest", flat=True))
    deleted = 0
    for digest in sorted(aged):
        with tenant_scope(tenant_id):
            deleted += _delete_unnamed(tenant_id, digest, older_than=old)
    return deleted


def _delete_unnamed(tenant_id: UUID, digest: str, *, older_than: float | None = None) -> int:
    _lock(digest)
    path = place_of(tenant_id, digest)
    if VisitorFile.objects.filter(digest=digest).exists() or (older_than is not None and _age(path) >= older_than):
        return 0
    path.unlink(missing_ok=True)
    return 1


def _delete_old(path: Path, old: float) -> int:
    if _age(path) >= old:
        return 0
    path.unlink(missing_ok=True)
    return 1


def _age(path: Path) -> float:
    """When it was written; what is gone meanwhile is new to nobody."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return float("inf")


def _files(folder: Path) -> Iterator[Path]:
    yield from (path for path in folder.rglob("*") if path.is_file())


def _lock(digest: str) -> None:
    """Until the transaction ends; two tenants' same bytes wait for each other, which harms nobody."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"file:{digest}"])


def _sync(folder: Path) -> None:
    """The new name is on the disk as well, and so are its folders'."""
    for each in (folder, folder.parent):
        handle = os.open(each, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _root() -> Path:
    return Path(settings.VAR_DIR) / "files"
