"""How does a company keep a secret? An envelope: sealed with AES-256-GCM under a data key of the company, which is
wrapped by `SILAS_SECRETS_KEY`. What is sealed is bound to the tenant and to what it belongs to; moved elsewhere it does
not open.

Inside the caller's tenant scope. Rooms that keep sealed values register how theirs are sealed anew (`reseals`), so that
a data key can be replaced; `rotate_secrets` is the command (ADR 77).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

from django.db.models import Max

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.tenants.models import DataKey
from kernel.clock import now
from kernel.errors import SilasError
from kernel.seal import seal as seal_with
from kernel.seal import unseal as unseal_with
from kernel.secrets_key import fingerprint, open_secret, seal_secret
from kernel.tenancy import current_tenant_id

_VERSION, _HEAD = b"\x01", 5
Reseal = Callable[[], int]
_reseals: dict[str, Reseal] = {}


def reseals(name: str, reseal: Reseal) -> None:
    """A room's way to seal all of its values of the scope's tenant under the newest key; it says how many it did."""
    _reseals[name] = reseal


def ensure_key() -> None:
    """Before a worker, which may make no key, seals anything of this company."""
    _active()


def seal(secret: bytes, *, belongs_to: str) -> bytes:
    """Under the company's newest data key; the first secret makes the first key."""
    key = _active()
    sealed = seal_with(_opened(key), secret, belongs_to=_place(belongs_to))
    return _VERSION + key.number.to_bytes(_HEAD - 1) + sealed


def unseal(sealed: bytes, *, belongs_to: str) -> bytes:
    """Raises `SilasError("seal_broken")`, for a key that is not there too."""
    key = DataKey.objects.filter(number=_number(sealed)).first() if sealed[:1] == _VERSION else None
    if key is None:
        raise SilasError("seal_broken", "A sealed value could not be opened with this key.", status=409)
    return unseal_with(_opened(key), sealed[_HEAD:], belongs_to=_place(belongs_to))


def sealed_anew(sealed: bytes, *, belongs_to: str) -> bytes | None:
    """The same secret under the newest data key; None where it is already."""
    if _number(sealed) == _active().number:
        return None
    return seal(unseal(sealed, belongs_to=belongs_to), belongs_to=belongs_to)


def rotate_data_key(*, actor: str) -> int:
    """A new data key from now on, and every sealed value under it; the old ones stay readable. Returns how many values
    were sealed anew."""
    DataKey.objects.filter(retired_at=None).update(retired_at=now())
    key = _new_key()
    count = sum(reseal() for reseal in _reseals.values())
    record(AuditEvent.SECRETS_RESEALED, actor=actor, data={"data_key": key.number, "values": count})
    return count


def rewrap(*, actor: str) -> int:
    """Every data key of the company under the installation's present key; returns how many were not."""
    rows = list(DataKey.objects.exclude(master=fingerprint()).select_for_update(no_key=True))
    for row in rows:
        plain = open_secret(bytes(row.wrapped), belongs_to=_key_place(row.number))
        row.wrapped, row.master = seal_secret(plain, belongs_to=_key_place(row.number)), fingerprint()
        row.save(update_fields=["wrapped", "master"])
    if rows:
        record(AuditEvent.SECRETS_RESEALED, actor=actor, data={"wrapped": len(rows)})
    return len(rows)


def _active() -> DataKey:
    found: DataKey | None = DataKey.objects.filter(retired_at=None).first()
    return found or _new_key()


def _new_key() -> DataKey:
    """Whoever makes the first one beside somebody else takes the other's."""
    number = (DataKey.objects.aggregate(last=Max("number"))["last"] or 0) + 1
    plain = secrets.token_urlsafe(32).encode()
    row = DataKey(number=number, wrapped=seal_secret(plain, belongs_to=_key_place(number)), master=fingerprint())
    DataKey.objects.bulk_create([row], ignore_conflicts=True)
    kept: DataKey = DataKey.objects.get(retired_at=None)
    return kept


def _opened(key: DataKey) -> str:
    return open_secret(bytes(key.wrapped), belongs_to=_key_place(key.number)).decode()


def _number(sealed: bytes) -> int:
    return int.from_bytes(sealed[1:_HEAD])


def _key_place(number: int) -> str:
    return f"data_key:{current_tenant_id()}:{number}"


def _place(belongs_to: str) -> str:
    return f"{current_tenant_id()}:{belongs_to}"
