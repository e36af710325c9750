"""Create and use approvers' Ed25519 keys, which only web processes can open, with `SILAS_SIGNING_KEY`.

The private key exists in memory for one signature, and in its row only sealed, bound to its tenant and person; a
retired key has none. The installation key certifies every key when it is created (`kernel.trust`). Only `services` of
this room calls this module; a process without the signing key gets `signing_key_missing`.
"""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings

from apps.approvals import queries, rules
from apps.approvals.models import ApproverKey
from apps.tenants.models import User
from kernel import trust
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.seal import seal, unseal
from kernel.tenancy import current_tenant_id


def key_for(user: User) -> ApproverKey:
    """Return the user's active key in this tenant, created on first use (spec 5.8) and safely if used twice at once."""
    return _active(user) or _create(user)


def sign(key: ApproverKey, payload: bytes) -> bytes:
    """Return the raw Ed25519 signature of `payload`. Raises `SilasError`: `key_retired`; `signing_key_missing`;
    `seal_broken` for a wrong signing key or a moved row."""
    return _private(key).sign(payload)


def rotate(old: ApproverKey) -> ApproverKey:
    """Retire the key and register the next one. The caller holds the lock of `old`."""
    _private(old)  # refuses a key that this process cannot open
    new, private = _new_key(old.user)
    new.previous = old
    new.sealed_private = _sealed(new, private)
    old.retired_at, old.sealed_private = now(), b""
    old.save(update_fields=["retired_at", "sealed_private"])
    new.save(force_insert=True)
    return new


def certificate_for(key: ApproverKey, *, signing_key: str = "") -> str:
    """Return the installation key's signature that this key belongs to this person in this tenant."""
    return trust.certify(rules.KEY_CERTIFICATE, queries.certified_fields(key), signing_key=signing_key)


def reseal(key: ApproverKey, *, old: str, new: str) -> bytes | None:
    """Return the private half sealed with another signing key; None if `new` already opens it."""
    try:
        unseal(new, bytes(key.sealed_private), belongs_to=_belongs_to(key))
    except SilasError:
        private = unseal(old, bytes(key.sealed_private), belongs_to=_belongs_to(key))
        return seal(new, private, belongs_to=_belongs_to(key))
    return None


def _active(user: User) -> ApproverKey | None:
    # Locked until the scope ends, so that no key is retired between a decision and its signature.
    key: ApproverKey | None = (
        ApproverKey.objects.select_for_update(no_key=True).filter(user=user, retired_at=None).first()
    )
    return key


def _create(user: User) -> ApproverKey:
    key, private = _new_key(user)
    key.sealed_private = _sealed(key, private)
    # Of two first decisions at once the second inserts nothing, and both sign with the key that is stored.
    ApproverKey.objects.bulk_create([key], ignore_conflicts=True)
    stored = _active(user)
    if stored is None:
        raise SilasError(ErrorCode.KEY_RETIRED, gettext("The key of this person has been retired."))
    return stored


def _new_key(user: User) -> tuple[ApproverKey, Ed25519PrivateKey]:
    private = Ed25519PrivateKey.generate()
    public = private.public_key().public_bytes_raw()
    key = ApproverKey(
        tenant_id=current_tenant_id(),
        user=user,
        key_id=sha256_hex(public)[:16],
        public_key=public.hex(),
        created_at=now(),
    )
    key.certificate = certificate_for(key)
    return key, private


def _sealed(key: ApproverKey, private: Ed25519PrivateKey) -> bytes:
    return seal(_signing_key(), private.private_bytes_raw(), belongs_to=_belongs_to(key))


def _private(key: ApproverKey) -> Ed25519PrivateKey:
    if key.retired_at is not None:
        raise SilasError(ErrorCode.KEY_RETIRED, gettext("A retired key can't sign."))
    raw = unseal(_signing_key(), bytes(key.sealed_private), belongs_to=_belongs_to(key))
    return Ed25519PrivateKey.from_private_bytes(raw)


def _belongs_to(key: ApproverKey) -> str:
    # Part of the seal: the private half does not open when it is copied to another person's row.
    return f"approver:{key.tenant_id}:{key.user_id}:{key.public_key}"


def _signing_key() -> str:
    if not settings.SILAS_SIGNING_KEY:
        raise SilasError(ErrorCode.SIGNING_KEY_MISSING, gettext("This process cannot sign approvals."))
    return str(settings.SILAS_SIGNING_KEY)
