"""Take out of the keyring what no row leads to. A note stands for every value that is on its way in or out.

It is written before the keyring is asked, and taken away once the transaction that decides is committed. Whoever dies
in between, comes to nothing, or finds the keyring locked leaves the note; upkeep asks the rows a day later (ADR 91).
Notes are empty files under `SILAS_VAR`, of the machine whose keyring it is; their names tell nobody what they lead to.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.db import transaction

from apps.bus.deliveries import Delivery
from apps.connections.backends import store_of
from apps.connections.enums import Backend
from apps.connections.models import Credential
from kernel.clock import now
from kernel.tenancy import current_tenant_id, for_each_tenant, tenant_scope

# Longer than any transaction lasts.
_IN_DOUBT = timedelta(days=1)
_EVERY = timedelta(hours=1)
_NAME = re.compile(r"([0-9a-f-]{36})\.((?:[0-9a-f]{2})+)")


def note_until_commit(backend: Backend, kept: bytes, *, then: Callable[[], None] | None = None) -> None:
    """Before a value is put where `kept` leads, or given up there. `then` is done after the commit; what it raises is
    logged, and the note stays."""
    note = _write_note(kept) if backend == Backend.KEYRING else None

    def settle() -> None:
        if then is not None:
            then()
        if note is not None:
            note.unlink(missing_ok=True)

    transaction.on_commit(settle, robust=True)


async def handle_cleanup(delivery: Delivery) -> None:
    """The handler of `keyring_cleanup`, a standing message of the installation."""
    await asyncio.to_thread(remove_strays)
    await delivery.reschedule(lambda: now() + _EVERY)


def remove_strays() -> int:
    """Take out of the keyring what no row leads to after a day. How many notes were settled; a keyring that is locked
    is asked again the next time."""
    due: dict[UUID, list[Path]] = {}
    for note in _folder().glob("*.*"):
        match = _NAME.fullmatch(note.name)
        if match and note.stat().st_mtime <= (now() - _IN_DOUBT).timestamp():
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
