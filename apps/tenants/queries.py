"""Who belongs where, and which deployment has this key? The ways to find a tenant before its scope is open."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.conf import settings

from apps.tenants.enums import Role
from apps.tenants.models import (
    ApiKey,
    Deployment,
    IdentityKey,
    LoginPasskey,
    Membership,
    MessageKey,
    Retention,
    Tenant,
    Totp,
    VisitorLimits,
)
from apps.tenants.rules import forbidden_role, is_api_key
from kernel.canonical import sha256_hex
from kernel.errors import NotFound
from kernel.llm.models import needs_key
from kernel.secrets_key import unseal_secret
from kernel.tenancy import lookup_scope


@dataclass(frozen=True)
class VerifyingKey:
    """What a token is checked with: `key` is the unsealed secret or the public PEM, and is never written anywhere."""

    key_id: str
    algorithm: str
    gate: str
    key: str = field(repr=False)


def memberships_of(user: Any) -> list[Membership]:
    """All of the user's memberships with their tenants, oldest first."""
    with lookup_scope(str(user.pk)):
        return list(Membership.objects.select_related("tenant").filter(user_id=user.pk).order_by("created_at"))


def deployment_by_key(public_key: str) -> Deployment | None:
    """The deployment with this public key, enabled or not; None when there is none."""
    with lookup_scope(public_key):
        found: Deployment | None = Deployment.objects.select_related("tenant").filter(public_key=public_key).first()
        return found


def api_key(key: str) -> ApiKey | None:
    """The row of this API key with its tenant; None for an unknown or revoked one. Found by its hash."""
    if not is_api_key(key):
        return None
    hashed = sha256_hex(key)
    with lookup_scope(hashed):
        found: ApiKey | None = ApiKey.objects.select_related("tenant").filter(hashed=hashed, revoked_at=None).first()
        return found


def list_api_keys() -> list[ApiKey]:
    """The scope's API keys: active ones first, newest first within each group."""
    return sorted(ApiKey.objects.order_by("-created_at"), key=lambda key: key.revoked_at is not None)


def get_api_key(key_id: UUID) -> ApiKey:
    """One of the scope's API keys. Raises `NotFound` for any other tenant's."""
    key: ApiKey | None = ApiKey.objects.filter(pk=key_id).first()
    if key is None:
        raise NotFound("API key")
    return key


def verifying_keys(deployment_id: UUID) -> list[VerifyingKey]:
    """With which keys the deployment's site may say who its visitor is, newest first. In web processes only."""
    rows = IdentityKey.objects.filter(deployment_id=deployment_id, retired_at=None).order_by("-created_at")
    return [VerifyingKey(row.key_id, row.algorithm, row.gate, _key_of(row)) for row in rows]


def signed_gates(deployment_id: UUID) -> frozenset[str]:
    """Which gates a token of the deployment's site passes."""
    return frozenset(
        IdentityKey.objects.filter(deployment_id=deployment_id, retired_at=None).values_list("gate", flat=True)
    )


def message_key(key_id: str) -> tuple[str, Role] | None:
    """The public key of this id and the present role of whoever signs with it; None for a retired or unknown key, and
    for somebody who is no member any more or cannot log in."""
    rows = MessageKey.objects.select_related("user").filter(key_id=key_id, retired_at=None, user__is_active=True)
    row: MessageKey | None = rows.first()
    role = role_of(row.user) if row else None
    return (row.public_key, role) if row and role else None


def visitor_limits() -> VisitorLimits | None:
    """How the scope's tenant differs from what the installation allows visitors, if it does."""
    row: VisitorLimits | None = VisitorLimits.objects.first()
    return row


@dataclass(frozen=True)
class Kept:
    """For how many days something is kept; None: for ever."""

    conversations: int | None
    memories: int | None
    messages: int
    skills: int | None


def retention() -> Kept:
    """What the scope's tenant keeps for how long: its own numbers, else those of the installation."""
    row: Retention | None = Retention.objects.first()
    if row is None:
        return Kept(None, None, settings.BUS_KEEP_DAYS, None)
    messages = row.message_days or settings.BUS_KEEP_DAYS
    return Kept(row.conversation_days, row.memory_days, messages, row.skill_days)


def identity_seal(row: IdentityKey) -> str:
    """What a sealed secret belongs to: moved to another row, it does not open."""
    return f"identity_key:{row.pk}"


def _key_of(row: IdentityKey) -> str:
    if row.sealed_secret is None:
        return row.public_key
    return unseal_secret(bytes(row.sealed_secret), belongs_to=identity_seal(row)).decode()


def all_tenants() -> list[Tenant]:
    return list(Tenant.objects.all())


def role_of(user: Any) -> Role | None:
    """The user's role in the scope's tenant; None for a stranger."""
    role = Membership.objects.filter(user_id=user.pk).values_list("role", flat=True).first()
    return Role(role) if role else None


def users_with_second_factor(user_ids: Iterable[UUID]) -> set[UUID]:
    """Those of these users who have an authenticator app or a passkey."""
    ids = list(user_ids)
    with_app = Totp.objects.filter(user_id__in=ids, confirmed_at__isnull=False).values_list("user_id", flat=True)
    return {*with_app, *LoginPasskey.objects.filter(user_id__in=ids).values_list("user_id", flat=True)}


def models_without_key(deployment: Deployment) -> list[str]:
    """Those of the deployment's models for which this process has no key that it may use."""
    named = sorted(set(deployment.model_names.values()))
    return [name for name in named if needs_key(name) and not deployment.keys.of(name)]


def is_last_owner(membership: Membership) -> bool:
    """Whether the tenant would have no owner left who can log in, if this member were none."""
    others = Membership.objects.filter(tenant_id=membership.tenant_id, role=Role.OWNER, user__is_active=True)
    was_owner = Membership.objects.filter(pk=membership.pk, role=Role.OWNER).exists()
    return was_owner and not others.exclude(pk=membership.pk).exists()


def require_role(user: Any, allowed: Collection[Role]) -> Role:
    """The user's role in the scope's tenant, if it is one of `allowed`; raises 403 `forbidden_role` otherwise."""
    role = role_of(user)
    if role is None or role not in allowed:
        raise forbidden_role(allowed)
    return role
