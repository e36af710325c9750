"""How does a secret come to a connection, and when does it leave its seal? Inside the caller's tenant scope.

`opened` is for the handlers of guarded calls alone (tests/architecture). What a conversation of set-up brings is
partial until it is completed and probed: then it takes the place of what was there, in one transaction (spec 5.10.1).
What another backend keeps goes after the commit, and what is new has a place of its own: a transaction that comes to
nothing loses nothing, and leaves nothing behind for long (`strays`, ADR 91).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from uuid import UUID, uuid4

from django.db.models.functions import Now

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.connections import keyring_cleanup
from apps.connections.backends import configured_backend, store_of
from apps.connections.enums import Backend
from apps.connections.models import Credential, SetupRun
from apps.tenants import vault
from kernel.errors import SilasError

MAX_BYTES = 64 * 1024
MAX_NAMES = 20


def store(connection_id: UUID, values: Mapping[str, str], *, setup: SetupRun | None = None) -> None:
    """Seal these values under their names, in the place of older ones; what is not named stays."""
    for name, value in values.items():
        _store_one(connection_id, name, value, setup)
    data = {"count": len(values), "partial": setup is not None}
    record(AuditEvent.CREDENTIALS_KEPT, subject=f"connection:{connection_id}", data=data)


def _store_one(connection_id: UUID, name: str, value: str, setup: SetupRun | None) -> None:
    row: Credential | None = Credential.objects.filter(connection_id=connection_id, name=name, setup=setup).first()
    if row is not None:
        _forget(row)
    row = row or Credential(connection_id=connection_id, name=name, setup=setup)
    row.backend = configured_backend()
    _put(row, vault.seal(value.encode(), belongs_to=seal_context(connection_id, name)))
    row.changed_at = Now()
    row.save()


def _put(row: Credential, sealed: bytes) -> None:
    backend, ref = Backend(row.backend), str(uuid4())
    keyring_cleanup.note_until_commit(backend, ref.encode())
    row.sealed = store_of(backend).keep(ref, sealed)


def _forget(row: Credential) -> None:
    """What the row remembers now is needed no more, once this is committed."""
    backend, kept = Backend(row.backend), bytes(row.sealed)
    keeping = store_of(backend)
    keyring_cleanup.note_until_commit(backend, kept, then=lambda: keeping.drop(kept))


def unseal_all(connection_id: UUID, *, setup: SetupRun | None = None) -> dict[str, str]:
    """The values by their names. With `setup`, those of a connection that is being set up: what it brought so far over
    what is there."""
    rows = Credential.objects.filter(connection_id=connection_id, setup=None)
    found = {row.name: _unseal(row) for row in rows}
    if setup is not None:
        found |= {row.name: _unseal(row) for row in Credential.objects.filter(setup=setup)}
    return found


def promote(setup: SetupRun) -> None:
    """What the conversation brought counts from now on."""
    for row in Credential.objects.filter(setup=setup):
        drop(Credential.objects.filter(connection_id=setup.connection_id, name=row.name, setup=None))
        row.setup = None
        row.save(update_fields=["setup"])


def drop_partial(setup: SetupRun) -> None:
    drop(Credential.objects.filter(setup=setup))


def drop_all(connection_id: UUID) -> None:
    drop(Credential.objects.filter(connection_id=connection_id))


def drop(rows: object) -> None:
    for row in list(rows):  # type: ignore[call-overload]
        _forget(row)
        row.delete()


def parse_handed_back(handed: bytes | None) -> dict[str, str]:
    """What a script handed back: one JSON object of texts. Raises `SilasError("credentials_unreadable")`, without a
    word of what it was."""
    if not handed:
        return {}
    try:
        found = json.loads(handed)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or len(found) > MAX_NAMES or not all(map(_is_valid, found.items())):
        raise SilasError("credentials_unreadable", "The script handed back credentials that cannot be read.")
    return found


def _is_valid(item: tuple[object, object]) -> bool:
    name, value = item
    named = isinstance(name, str) and 0 < len(name) <= 60
    return named and isinstance(value, str) and 0 < len(value.encode(errors="replace")) <= MAX_BYTES


def seal_context(connection_id: UUID, name: str) -> str:
    return f"credential:{connection_id}:{name}"


def _unseal(row: Credential) -> str:
    return vault.unseal(_fetch(row), belongs_to=seal_context(row.connection_id, row.name)).decode()


def _fetch(row: Credential) -> bytes:
    return store_of(Backend(row.backend)).fetch(bytes(row.sealed))


def reseal() -> int:
    """Every credential of the tenant under its newest data key."""
    done = 0
    for row in Credential.objects.select_for_update(no_key=True):
        fresh = vault.reseal(_fetch(row), belongs_to=seal_context(row.connection_id, row.name))
        if fresh is not None:
            _forget(row)
            _put(row, fresh)
            row.save(update_fields=["sealed"])
            done += 1
    return done
