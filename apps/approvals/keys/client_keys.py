"""Register and revoke the keys with which programs sign decisions. Runs inside the caller's tenant scope.

A member registers a key for an API key of their company; from then on that program decides on their behalf, within the
rights of the key (ADR 124).
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from django.db import IntegrityError, transaction

from apps.approvals import queries, rules
from apps.approvals.cards.lifecycle import require_approver
from apps.approvals.enums import ApprovalScope, Risk
from apps.approvals.models import ClientKey
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.tenants import policy_seals
from apps.tenants.enums import PolicyKind
from apps.tenants.models import ApiKey, User
from kernel import trust
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.tenancy import current_tenant_id


def register(
    user: User, api_key: ApiKey, *, public_key: str, scopes: Collection[ApprovalScope], max_risk: Risk
) -> ClientKey:
    """Let a program with `api_key` decide on the member's behalf with the key whose public half this is (64 hexadecimal
    digits). Web processes only.

    Raises `SilasError`: `approver_required` 403; `api_key_ended` 409; `client_key_invalid` 422 for something that is
    no Ed25519 key and without scopes; `client_key_known` 409; `signing_key_missing` 403.
    """
    require_approver(user)
    if not api_key.is_active:
        raise SilasError(ErrorCode.API_KEY_ENDED)
    key = ClientKey(
        tenant_id=current_tenant_id(),
        api_key=api_key,
        user=user,
        key_id=sha256_hex(_parsed(public_key))[:16],
        public_key=public_key.strip().lower(),
        scopes=sorted(set(scopes)),
        max_risk=max_risk,
        created_at=now(),
    )
    if not key.scopes:
        raise SilasError(ErrorCode.CLIENT_KEY_INVALID)
    key.certificate = trust.certify(rules.CLIENT_KEY_CERTIFICATE, queries.client_key_fields(key))
    try:
        # A savepoint: without it a violated constraint would make the caller's transaction unusable.
        with transaction.atomic():
            key.save(force_insert=True)
    except IntegrityError:
        raise SilasError(ErrorCode.CLIENT_KEY_KNOWN) from None
    data = {"key": key.key_id, "api_key": str(api_key.pk), "scopes": key.scopes, "max_risk": key.max_risk}
    record(AuditEvent.CLIENT_KEY_REGISTERED, actor=user.actor, subject=f"user:{user.pk}", data=data)
    return key


def revoke(key_id: str, *, actor: str) -> None:
    """Let the key decide nothing any more. Its approvals of cards that are still open no longer count. Raises
    `NotFound` for a key that is unknown or revoked, and what `policy_seals.seal_item` raises."""
    key = ClientKey.objects.select_for_update(no_key=True).filter(key_id=key_id, revoked_at=None).first()
    if key is None:
        raise NotFound()
    key.revoked_at = now()
    key.save(update_fields=["revoked_at"])
    # The sealed list decides too, so that clearing the column with SQL does not make the key valid again.
    policy_seals.seal_item(PolicyKind.REVOCATIONS, queries.revoked_key_name(key.key_id), {})
    record(AuditEvent.CLIENT_KEY_REVOKED, actor=actor, subject=f"user:{key.user_id}", data={"key": key.key_id})


def key_for(key_id: str, *, api_key_id: UUID | None) -> ClientKey:
    """The valid key of this program. Raises `SilasError("signature_invalid")` 403 for a key that is unknown, revoked,
    bound to another API key or not certified."""
    key: ClientKey | None = ClientKey.objects.select_related("user").filter(key_id=key_id, api_key=api_key_id).first()
    if key is None or not queries.is_valid_client_key(key):
        raise SilasError(ErrorCode.SIGNATURE_INVALID)
    return key


def _parsed(public_key: str) -> bytes:
    try:
        raw = bytes.fromhex(public_key.strip())
        Ed25519PublicKey.from_public_bytes(raw)
    except ValueError:
        raise SilasError(ErrorCode.CLIENT_KEY_INVALID) from None
    return raw
