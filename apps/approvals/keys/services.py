"""Replace, revoke, reseal and certify approvers' keys. Runs inside the caller's tenant scope.

What a retired key signed stays valid until it expires or is revoked, unless the key itself is revoked; nothing is
signed with a retired key. The caller checks permissions: people rotate their own key, the platform's operator any key.
"""

from __future__ import annotations

from dataclasses import dataclass

from apps.approvals import locks, queries, rules
from apps.approvals.keys import signing
from apps.approvals.models import ApproverKey, ClientKey
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.tenants import policy_seals
from apps.tenants.enums import PolicyKind
from apps.tenants.models import User
from kernel import trust
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError


def rotate_key(user: User, *, actor: str, compromised: bool = False) -> ApproverKey:
    """Retire the user's key and register a certified new one. Web processes only.

    `compromised` also revokes the old key: every token that it signed is refused from then on. Raises `SilasError`:
    `signing_key_missing` 403, `seal_broken` 409.
    """
    old = locks.lock_key(signing.key_for(user).key_id)
    new = signing.rotate(old)
    data = {"old": old.key_id, "new": new.key_id}
    record(AuditEvent.APPROVER_KEY_ROTATED, actor=actor, subject=f"user:{user.pk}", data=data)
    if compromised:
        revoke_key(old.key_id, actor=actor)
    return new


def revoke_key(key_id: str, *, actor: str) -> None:
    """Revoke a retired key, and with it everything that it signed.

    Raises `SilasError`: `not_found` 404, `key_active` 409 (rotate it first), `key_revoked` 409, and as
    `policy_seals.seal_item`.
    """
    key = locks.lock_key(key_id)
    if key.retired_at is None:
        raise SilasError(ErrorCode.KEY_ACTIVE)
    if key.revoked_at is not None:
        raise SilasError(ErrorCode.KEY_REVOKED)
    key.revoked_at = now()
    key.save(update_fields=["revoked_at"])
    # The sealed list decides too, so that clearing the column with SQL does not make the key valid again.
    policy_seals.seal_item(PolicyKind.REVOCATIONS, queries.revoked_key_name(key.key_id), {})
    record(AuditEvent.APPROVER_KEY_REVOKED, actor=actor, subject=f"user:{key.user_id}", data={"key": key_id})


@dataclass(frozen=True)
class Resealed:
    """How many keys have the new seal, and the ids of those that neither signing key opened."""

    resealed: int
    unopened: tuple[str, ...]


def reseal_keys(*, old: str, new: str, actor: str) -> Resealed:
    """Seal the tenant's active keys with another signing key of the platform, and certify with the new installation key
    all that the old one had certified. The keys themselves stay, and uncertified ones stay uncertified."""
    resealed, unopened = 0, []
    for key in ApproverKey.objects.select_for_update(no_key=True).filter(retired_at=None):
        try:
            sealed = signing.reseal(key, old=old, new=new)
        except SilasError:
            unopened.append(key.key_id)
            continue
        resealed += sealed is not None and ApproverKey.objects.filter(pk=key.pk).update(sealed_private=sealed)
    before = (trust.root_of(old),)
    for key in ApproverKey.objects.select_for_update(no_key=True).filter(revoked_at=None):
        if queries.is_certified(key, by=before):
            certificate = signing.certificate_for(key, signing_key=new)
            ApproverKey.objects.filter(pk=key.pk).update(certificate=certificate)
    for client_key in ClientKey.objects.select_for_update(no_key=True).filter(revoked_at=None):
        fields = queries.client_key_fields(client_key)
        if trust.is_certified(rules.CLIENT_KEY_CERTIFICATE, fields, client_key.certificate, by=before):
            certificate = trust.certify(rules.CLIENT_KEY_CERTIFICATE, fields, signing_key=new)
            ClientKey.objects.filter(pk=client_key.pk).update(certificate=certificate)
    policy_seals.reseal(old=old, new=new)
    if resealed:
        record(AuditEvent.APPROVER_KEYS_RESEALED, actor=actor, data={"keys": resealed})
    return Resealed(resealed, tuple(unopened))


def certify_keys() -> int:
    """Certify every key of the tenant that is not revoked and has no certificate; returns how many. It trusts the rows
    as they are, so only `manage.py certify` calls it."""
    rows = ApproverKey.objects.select_for_update(no_key=True).filter(revoked_at=None)
    uncertified = [key for key in rows if not queries.is_certified(key)]
    for key in uncertified:
        ApproverKey.objects.filter(pk=key.pk).update(certificate=signing.certificate_for(key))
    return len(uncertified)
