"""Store visitors' files with Django's storage `files`: a folder by default, S3 by setting (django-storages).

Bytes are received into a local file and examined there, stored under a name that is never used again, and only then
named by a row: if a process dies, bytes may be without a row (`sweep` deletes them after an hour), never a row without
its bytes. Nothing here is served by a web server.
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
from django.core.files import File
from django.core.files.storage import FileSystemStorage, Storage, storages
from django.db import transaction
from django.utils import timezone

from apps.visitors.models import VisitorFile
from kernel.disk import sync
from kernel.tenancy import current_tenant_id, for_each_tenant, tenant_scope

ORPHAN_SECONDS = 3600


class TooLarge(Exception):
    """More bytes came than are accepted."""


class DurableFileSystemStorage(FileSystemStorage):
    """A folder in which a stored file, and its name, are on the disk when `save` returns."""

    def _save(self, name: str, content: File[bytes]) -> str:
        saved: str = super()._save(name, content)  # type: ignore[misc]  # Django's stubs leave it out
        path = Path(self.path(saved))
        for synced in (path, path.parent, path.parent.parent):
            sync(synced)
        return saved


def storage() -> Storage:
    stored: Storage = storages["files"]
    return stored


def receive(chunks: Iterable[bytes], *, most: int) -> tuple[Path, str, int]:
    """Write the chunks to a local file: (path, SHA-256 in hex, bytes). Raises `TooLarge`, and keeps nothing then."""
    folder = _incoming()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / uuid4().hex
    digest, size = hashlib.sha256(), 0
    try:
        # Exclusive: never through a link that stands there.
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            for chunk in chunks:
                size += len(chunk)
                if size > most:
                    raise TooLarge
                digest.update(chunk)
                file.write(chunk)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path, digest.hexdigest(), size


def put(received: Path, tenant_id: UUID) -> str:
    """Store received bytes for a tenant and return their name. May use the network: outside of a transaction."""
    with received.open("rb") as file:
        return str(storage().save(f"{tenant_id.hex}/{uuid4().hex}", File(file)))


def delete_on_commit(names: Iterable[str]) -> None:
    """Delete bytes whose row goes with this transaction, once it is committed. What a crash leaves is swept."""
    tenant_id, deleted = current_tenant_id(), sorted(set(names))

    def delete() -> None:
        with tenant_scope(tenant_id):
            kept = set(VisitorFile.objects.filter(stored_name__in=deleted).values_list("stored_name", flat=True))
        for name in deleted:
            if name not in kept:  # rows from before 0005 may share bytes
                storage().delete(name)

    transaction.on_commit(delete, robust=True)


def sweep() -> int:
    """Delete bytes that no row has named for an hour, of all tenants; how many. Outside of any scope."""
    deleted = 0
    for path in _incoming().iterdir() if _incoming().is_dir() else ():
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < time.time() - ORPHAN_SECONDS:
                path.unlink()
                deleted += 1
    return deleted + for_each_tenant(_tenants_with_bytes(), _sweep_tenant)


def _tenants_with_bytes() -> Iterator[UUID]:
    with suppress(FileNotFoundError):
        for folder in storage().listdir("")[0]:
            with suppress(ValueError):
                yield UUID(hex=folder)


def _sweep_tenant(tenant_id: UUID) -> int:
    orphans = {name for name in _names_below(tenant_id.hex) if _is_old(name)}
    if orphans:
        # After the names: a file whose row is being written is too young to be among them.
        with tenant_scope(tenant_id):
            orphans -= set(VisitorFile.objects.filter(stored_name__in=orphans).values_list("stored_name", flat=True))
    for name in orphans:
        storage().delete(name)
    return len(orphans)


def _names_below(folder: str) -> Iterator[str]:
    folders, files = storage().listdir(folder)
    yield from (f"{folder}/{name}" for name in files)
    for inner in folders:
        yield from _names_below(f"{folder}/{inner}")


def _is_old(name: str) -> bool:
    try:
        return (timezone.now() - storage().get_modified_time(name)).total_seconds() > ORPHAN_SECONDS
    except FileNotFoundError:
        return False


def _incoming() -> Path:
    return Path(settings.VAR_DIR) / "incoming"
