"""Seal a tenant's secrets with envelope encryption: AES-256-GCM under the tenant's data key, which `SILAS_SECRETS_KEY`
wraps. A sealed value is bound to its tenant and to what it belongs to; copied elsewhere it does not open.

Runs in the caller's tenant scope. Rooms that keep sealed values register a function that reseals them
(`register_resealer`), so that a data key can be replaced by the command `rotate_secrets` (ADR 77).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

from django.db.models import Max

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.tenants.models import DataKey
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.seal import seal as seal_with
from kernel.seal import unseal as unseal_with
from kernel.secrets_key import key_fingerprint, seal_secret, unseal_secret
from kernel.tenancy import current_tenant_id

_VERSION, _HEAD = b"\x01", 5
Resealer = Callable[[], int]
_resealers: dict[str, Resealer] = {}


def register_resealer(name: str, reseal: Resealer) -> None:
    """Register a function that reseals all of a room's values in the scope and returns how many it resealed."""
    _resealers[name] = reseal


def ensure_key() -> None:
    """Create the data key if there is none. Called before a worker, which may not create keys, seals anything."""
    _active()


def seal(secret: bytes, *, belongs_to: str) -> bytes:
    """Seal with the tenant's active data key, which is created with the first secret."""
    key = _active()
    sealed = seal_with(_opened(key), secret, belongs_to=_place(belongs_to))
    # The key's number stands in front, so that older values open after a rotation.
    return _VERSION + key.number.to_bytes(_HEAD - 1) + sealed


def unseal(sealed: bytes, *, belongs_to: str) -> bytes:
    """Raises `SilasError("seal_broken")` 409, also when the data key does not exist."""
    key = DataKey.objects.filter(number=_number(sealed)).first() if sealed[:1] == _VERSION else None
    if key is None:
        raise SilasError(ErrorCode.SEAL_BROKEN)
    return unseal_with(_opened(key), sealed[_HEAD:], belongs_to=_place(belongs_to))


def reseal(sealed: bytes, *, belongs_to: str) -> bytes | None:
    """The same secret sealed with the active data key; None if it already is."""
    if _number(sealed) == _active().number:
        return None
    return seal(unseal(sealed, belongs_to=belongs_to), belongs_to=belongs_to)


def rotate_data_key(*, actor: str) -> int:
    """Create a new data key and reseal every value with it; returns how many. Retired keys still open old values."""
    DataKey.objects.filter(retired_at=None).update(retired_at=now())
    key = _new_key()
    count = sum(reseal() for reseal in _resealers.values())
    record(AuditEvent.SECRETS_RESEALED, actor=actor, data={"data_key": key.number, "values": count})
    return count


def rewrap(*, actor: str) -> int:
    """Wrap the tenant's data keys with the current installation key; returns how many were wrapped by an older one."""
    rows = list(DataKey.objects.exclude(master=key_fingerprint()).select_for_update(no_key=True))
    for row in rows:
        plain = unseal_secret(bytes(row.wrapped), belongs_to=_key_place(row.number))
        row.wrapped, row.master = seal_secret(plain, belongs_to=_key_place(row.number)), key_fingerprint()
        row.save(update_fields=["wrapped", "master"])
    if rows:
        record(AuditEvent.SECRETS_RESEALED, actor=actor, data={"wrapped": len(rows)})
    return len(rows)


def _active() -> DataKey:
    found: DataKey | None = DataKey.objects.filter(retired_at=None).first()
    return found or _new_key()


def _new_key() -> DataKey:
    number = (DataKey.objects.aggregate(last=Max("number"))["last"] or 0) + 1
    plain = secrets.token_urlsafe(32).encode()
    row = DataKey(number=number, wrapped=seal_secret(plain, belongs_to=_key_place(number)), master=key_fingerprint())
    # Of two processes that create the first key at once, the second one uses the first one's.
    DataKey.objects.bulk_create([row], ignore_conflicts=True)
    kept: DataKey = DataKey.objects.get(retired_at=None)
    return kept


def _opened(key: DataKey) -> str:
    return unseal_secret(bytes(key.wrapped), belongs_to=_key_place(key.number)).decode()


def _number(sealed: bytes) -> int:
    return int.from_bytes(sealed[1:_HEAD])


def _key_place(number: int) -> str:
    return f"data_key:{current_tenant_id()}:{number}"


def _place(belongs_to: str) -> str:
    # Part of the seal: a value copied to another tenant's row does not open there.
    return f"{current_tenant_id()}:{belongs_to}"
