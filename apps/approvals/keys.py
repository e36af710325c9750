"""Who can sign? Web processes, with an approver's Ed25519 key that only `SILAS_SIGNING_KEY` opens.

The private key exists in memory for one signature and in its row only sealed, bound to its tenant and person.
Called by `services` of this room and by nobody else; a process without the signing key gets `signing_key_missing`.
"""

from __future__ import annotations

from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings

from apps.approvals.models import ApproverKey
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.errors import SilasError
from kernel.seal import seal, unseal
from kernel.tenancy import current_tenant_id


def key_for(user: Any) -> ApproverKey:
    """The user's key in this tenant, made on first use (spec 5.8); two first uses at once end with one key."""
    return _find(user) or _create(user)


def sign(key: ApproverKey, payload: bytes) -> bytes:
    """The raw Ed25519 signature of `payload`. Raises `SilasError` without the signing key or with a moved row."""
    private = unseal(_signing_key(), bytes(key.sealed_private), belongs_to=_belongs_to(key))
    return Ed25519PrivateKey.from_private_bytes(private).sign(payload)


def _find(user: Any) -> ApproverKey | None:
    found: ApproverKey | None = ApproverKey.objects.filter(user=user).first()
    return found


def _create(user: Any) -> ApproverKey:
    private = Ed25519PrivateKey.generate()
    public = private.public_key().public_bytes_raw()
    key = ApproverKey(
        tenant_id=current_tenant_id(),
        user=user,
        key_id=sha256_hex(public)[:16],
        public_key=public.hex(),
        created_at=now(),
    )
    key.sealed_private = seal(_signing_key(), private.private_bytes_raw(), belongs_to=_belongs_to(key))
    ApproverKey.objects.bulk_create([key], ignore_conflicts=True)
    stored: ApproverKey = ApproverKey.objects.get(user=user)
    return stored


def _belongs_to(key: ApproverKey) -> str:
    return f"approver:{key.tenant_id}:{key.user_id}:{key.public_key}"


def _signing_key() -> str:
    if not settings.SILAS_SIGNING_KEY:
        raise SilasError("signing_key_missing", "This process cannot sign approvals.", status=403)
    return str(settings.SILAS_SIGNING_KEY)
