"""Find memberships, deployments and keys, also before the tenant's scope is open."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from uuid import UUID

from django.conf import settings
from django.db.models import Q

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
    User,
    VisitorLimits,
)
from apps.tenants.rules import forbidden_role, is_api_key
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.errors import NotFound
from kernel.pagination import read_page
from kernel.secrets_key import unseal_secret
from kernel.tenancy import current_tenant_id, lookup_scope
from llm.models import needs_key


@dataclass(frozen=True)
class VerifyingKey:
    """A key that verifies tokens: `key` is the unsealed secret or the public PEM; it is never stored or logged."""

    key_id: str
    algorithm: str
    gate: str
    key: str = field(repr=False)


def memberships_of(user: User) -> list[Membership]:
    """All of the user's memberships with their tenants, oldest first."""
    with lookup_scope(str(user.pk)):
        return list(Membership.objects.select_related("tenant").filter(user_id=user.pk).order_by("created_at"))


def deployment_by_key(public_key: str) -> Deployment | None:
    """The deployment with this public key, enabled or not; None when there is none."""
    with lookup_scope(public_key):
        deployment: Deployment | None = (
            Deployment.objects.select_related("tenant").filter(public_key=public_key).first()
        )
        return deployment


def deployment_by_id(deployment_id: UUID) -> Deployment:
    """One of the scope's deployments. Raises `NotFound` for any other tenant's."""
    deployment: Deployment | None = Deployment.objects.filter(pk=deployment_id).first()
    if deployment is None:
        raise NotFound()
    return deployment


def list_deployments(*, before: str, limit: int) -> tuple[list[Deployment], str]:
    """The scope's deployments, newest first, and the cursor of the next page."""
    return read_page(Deployment.objects.all(), before=before, limit=limit)


def api_key(key: str) -> ApiKey | None:
    """The row of this API key with its tenant, found by its hash or, during the overlap of a rotation, by the hash of
    the secret before; None if it is unknown, expired or revoked."""
    if not is_api_key(key):
        return None
    hashed = sha256_hex(key)
    with lookup_scope(hashed):
        known = Q(hashed=hashed) | Q(previous_hashed=hashed, previous_until__gt=now())
        row: ApiKey | None = ApiKey.objects.select_related("tenant").filter(known).first()
        # Expiry and revocation on the row, so that they hold for both secrets of a rotation.
        return row if row and row.is_active else None


def list_api_keys() -> list[ApiKey]:
    """The scope's API keys: active ones first, newest first within each group."""
    return sorted(ApiKey.objects.order_by("-created_at"), key=lambda key: not key.is_active)


def page_of_api_keys(*, before: str, limit: int) -> tuple[list[ApiKey], str]:
    """The scope's API keys, newest first, and the cursor of the next page."""
    return read_page(ApiKey.objects.all(), before=before, limit=limit)


def get_api_key(key_id: UUID) -> ApiKey:
    """One of the scope's API keys. Raises `NotFound` for any other tenant's."""
    key: ApiKey | None = ApiKey.objects.filter(pk=key_id).first()
    if key is None:
        raise NotFound()
    return key


def verifying_keys(deployment_id: UUID) -> list[VerifyingKey]:
    """Active keys with which the deployment's website may sign identities, newest first. In web processes only."""
    rows = IdentityKey.objects.filter(deployment_id=deployment_id, retired_at=None).order_by("-created_at")
    return [VerifyingKey(row.key_id, row.algorithm, row.gate, _verifying_key(row)) for row in rows]


def signed_gates(deployment_id: UUID) -> frozenset[str]:
    """Names of the gates that a token signed by the deployment's website passes."""
    return frozenset(
        IdentityKey.objects.filter(deployment_id=deployment_id, retired_at=None).values_list("gate", flat=True)
    )


def message_key(key_id: str) -> tuple[str, Role] | None:
    """The public key with this id and the current role of its member; None if the key is retired or unknown, or if its
    member left or is deactivated."""
    rows = MessageKey.objects.select_related("user").filter(key_id=key_id, retired_at=None, user__is_active=True)
    row: MessageKey | None = rows.first()
    role = role_of(row.user) if row else None
    return (row.public_key, role) if row and role else None


def visitor_limits() -> VisitorLimits | None:
    """The scope's own visitor limits, if it has any."""
    row: VisitorLimits | None = VisitorLimits.objects.first()
    return row


@dataclass(frozen=True)
class RetentionDays:
    """Days after which data is deleted; None means never."""

    conversations: int | None
    memories: int | None
    messages: int
    skills: int | None


def retention() -> RetentionDays:
    """The retention of the scope's tenant: its own values, else those of the installation."""
    row: Retention | None = Retention.objects.first()
    if row is None:
        return RetentionDays(None, None, settings.BUS_KEEP_DAYS, None)
    messages = row.message_days or settings.BUS_KEEP_DAYS
    return RetentionDays(row.conversation_days, row.memory_days, messages, row.skill_days)


def identity_seal(row: IdentityKey) -> str:
    """The row to which the sealed secret is bound: copied to another row, it does not open."""
    return f"identity_key:{row.pk}"


def _verifying_key(row: IdentityKey) -> str:
    if row.sealed_secret is None:
        return row.public_key
    return unseal_secret(bytes(row.sealed_secret), belongs_to=identity_seal(row)).decode()


def is_simulated() -> bool:
    """Whether the scope's tenant is a copy in which simulations run: its scripts get no network (ADR 120)."""
    return Tenant.objects.filter(pk=current_tenant_id(), is_simulated=True).exists()


def all_tenants(slug: str = "") -> list[Tenant]:
    """Every tenant, or only the one with this slug."""
    return list(Tenant.objects.filter(slug=slug) if slug else Tenant.objects.all())


def role_of(user: User) -> Role | None:
    """The user's role in the scope's tenant; None if they are not a member."""
    role = Membership.objects.filter(user_id=user.pk).values_list("role", flat=True).first()
    return Role(role) if role else None


def users_with_second_factor(user_ids: Iterable[UUID]) -> set[UUID]:
    """Those of these users who have an authenticator app or a passkey."""
    ids = list(user_ids)
    with_app = Totp.objects.filter(user_id__in=ids, confirmed_at__isnull=False).values_list("user_id", flat=True)
    return {*with_app, *LoginPasskey.objects.filter(user_id__in=ids).values_list("user_id", flat=True)}


def models_without_key(deployment: Deployment) -> list[str]:
    """Models of the deployment for which there is no provider key that it may use."""
    names = sorted(set(deployment.model_names.values()))
    return [name for name in names if needs_key(name) and not deployment.keys.of(name)]


def is_last_owner(membership: Membership) -> bool:
    """Whether the member is the tenant's only active owner."""
    others = Membership.objects.filter(tenant_id=membership.tenant_id, role=Role.OWNER, user__is_active=True)
    was_owner = Membership.objects.filter(pk=membership.pk, role=Role.OWNER).exists()
    return was_owner and not others.exclude(pk=membership.pk).exists()


def require_role(user: User, allowed: Collection[Role]) -> Role:
    """The user's role in the scope's tenant. Raises 403 `forbidden_role` if it is not one of `allowed`."""
    role = role_of(user)
    if role is None or role not in allowed:
        raise forbidden_role(allowed)
    return role
