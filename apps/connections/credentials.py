"""Store and unseal the secrets of connections, inside the caller's tenant scope.

Only handlers of guarded calls may use `unseal_all` (tests/architecture). What a set-up conversation brings is partial
until the set-up is completed and probed; then it replaces what was there, in one transaction (spec 5.10.1). Values in
another backend than the database are deleted after the commit, and a new value always gets a new place: a transaction
that is rolled back loses nothing, and leaves nothing behind for long (`keyring_cleanup`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from uuid import UUID, uuid4

from django.db.models import QuerySet
from django.db.models.functions import Now

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.connections import keyring_cleanup
from apps.connections.backends import configured_backend, store_of
from apps.connections.enums import Backend
from apps.connections.models import Credential, SetupRun
from apps.tenants import vault
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError

MAX_BYTES = 64 * 1024
MAX_NAMES = 20


def store(connection_id: UUID, values: Mapping[str, str], *, setup: SetupRun | None = None) -> None:
    """Seal these values under their names, replacing older ones; names that are not given stay as they are."""
    for name, value in values.items():
        row: Credential | None = Credential.objects.filter(connection_id=connection_id, name=name, setup=setup).first()
        if row is not None:
            _drop_value(row)
        row = row or Credential(connection_id=connection_id, name=name, setup=setup)
        row.backend = configured_backend()
        _put(row, vault.seal(value.encode(), belongs_to=seal_context(connection_id, name)))
        row.changed_at = Now()
        row.save()
    data = {"count": len(values), "partial": setup is not None}
    record(AuditEvent.CREDENTIALS_KEPT, subject=f"connection:{connection_id}", data=data)


def _put(row: Credential, sealed: bytes) -> None:
    backend, ref = Backend(row.backend), str(uuid4())
    keyring_cleanup.note_until_commit(backend, ref.encode())
    row.sealed = store_of(backend).keep(ref, sealed)


def _drop_value(row: Credential) -> None:
    """Delete the value that the row refers to, once the transaction is committed."""
    backend, kept = Backend(row.backend), bytes(row.sealed)
    backend_store = store_of(backend)
    keyring_cleanup.note_until_commit(backend, kept, then=lambda: backend_store.drop(kept))


def unseal_all(connection_id: UUID, *, setup: SetupRun | None = None) -> dict[str, str]:
    """Return the values by name. With `setup`, what that set-up has brought so far overrides what is there."""
    rows = Credential.objects.filter(connection_id=connection_id, setup=None)
    values = {row.name: _unseal(row) for row in rows}
    if setup is not None:
        values |= {row.name: _unseal(row) for row in Credential.objects.filter(setup=setup)}
    return values


def promote(setup: SetupRun) -> None:
    """Replace the connection's credentials with those that the set-up brought."""
    for row in Credential.objects.filter(setup=setup):
        drop(Credential.objects.filter(connection_id=setup.connection_id, name=row.name, setup=None))
        row.setup = None
        row.save(update_fields=["setup"])


def drop_partial(setup: SetupRun) -> None:
    drop(Credential.objects.filter(setup=setup))


def drop_all(connection_id: UUID) -> None:
    drop(Credential.objects.filter(connection_id=connection_id))


def drop(rows: QuerySet[Credential]) -> None:
    """Delete these rows, and their values after the commit."""
    for row in list(rows):
        _drop_value(row)
        row.delete()


def parse_handed_back(raw: bytes | None) -> dict[str, str]:
    """Read the credentials that a script handed back: one JSON object of texts. Raises
    `SilasError("credentials_unreadable")`, which repeats nothing of them."""
    if not raw:
        return {}
    try:
        values = json.loads(raw)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict) or len(values) > MAX_NAMES or not all(map(_is_valid, values.items())):
        raise SilasError(ErrorCode.CREDENTIALS_UNREADABLE)
    return values


def _is_valid(item: tuple[object, object]) -> bool:
    name, value = item
    if not isinstance(name, str) or not 0 < len(name) <= 60:
        return False
    return isinstance(value, str) and 0 < len(value.encode(errors="replace")) <= MAX_BYTES


def seal_context(connection_id: UUID, name: str) -> str:
    """Return what a value is bound to when it is sealed, so that it cannot be moved to another connection or name."""
    return f"credential:{connection_id}:{name}"


def _unseal(row: Credential) -> str:
    return vault.unseal(_fetch(row), belongs_to=seal_context(row.connection_id, row.name)).decode()


def _fetch(row: Credential) -> bytes:
    return store_of(Backend(row.backend)).fetch(bytes(row.sealed))


def reseal() -> int:
    """Seal every credential of the tenant under its newest data key; returns how many were changed."""
    count = 0
    for row in Credential.objects.select_for_update(no_key=True):
        sealed = vault.reseal(_fetch(row), belongs_to=seal_context(row.connection_id, row.name))
        if sealed is not None:
            _drop_value(row)
            _put(row, sealed)
            row.save(update_fields=["sealed"])
            count += 1
    return count
