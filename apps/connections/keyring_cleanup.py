"""Remove values from the keyring that no row refers to.

The keyring is outside of the database's transactions. So a note is written before a value is put there or given up, and
is removed once the transaction is committed. When the process dies in between, the transaction is rolled back or the
keyring is locked, the note stays, and a day later the rows decide. Notes are empty files under `SILAS_VAR`, on the
machine whose keyring it is; their names do not reveal what they refer to.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.db import transaction

from apps.connections.backends import store_of
from apps.connections.enums import Backend
from apps.connections.models import Credential
from kernel.clock import now
from kernel.tenancy import current_tenant_id, for_each_tenant, tenant_scope

# Longer than any transaction lasts.
_GRACE = timedelta(days=1)
_NOTE_NAME = re.compile(r"([0-9a-f-]{36})\.((?:[0-9a-f]{2})+)")


def note_until_commit(backend: Backend, kept: bytes, *, then: Callable[[], None] | None = None) -> None:
    """Write a note for the value that `kept` refers to, before it is stored or given up; remove it after the commit.

    `then` is called after the commit; an exception that it raises is logged, and the note stays.
    """
    note = _write_note(kept) if backend == Backend.KEYRING else None

    def settle() -> None:
        if then is not None:
            then()
        if note is not None:
            note.unlink(missing_ok=True)

    transaction.on_commit(settle, robust=True)


def remove_strays() -> int:
    """Remove what no row refers to from the keyring, for notes that are older than a day; returns how many notes were
    resolved. While the keyring is locked, notes stay for the next time."""
    due: dict[UUID, list[Path]] = {}
    for note in _folder().glob("*.*"):
        match = _NOTE_NAME.fullmatch(note.name)
        if match and note.stat().st_mtime <= (now() - _GRACE).timestamp():
            due.setdefault(UUID(match[1]), []).append(note)
    return for_each_tenant(due, lambda tenant_id: sum(_resolve_note(tenant_id, note) for note in due[tenant_id]))


def _resolve_note(tenant_id: UUID, note: Path) -> bool:
    kept = bytes.fromhex(note.name.partition(".")[2])
    with tenant_scope(tenant_id):
        is_needed = Credential.objects.filter(backend=Backend.KEYRING, sealed=kept).exists()
    if not is_needed:
        store_of(Backend.KEYRING).drop(kept)
    note.unlink(missing_ok=True)
    return True


def _write_note(kept: bytes) -> Path:
    note = _folder() / f"{current_tenant_id()}.{kept.hex()}"
    note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    note.touch()
    return note


def _folder() -> Path:
    return Path(settings.VAR_DIR) / "keyring"
