"""Who belongs where, and which deployment has this key? The ways to find a tenant before its scope is open."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from apps.tenants.enums import Role
from apps.tenants.models import ApiKey, Deployment, Membership, Tenant
from apps.tenants.rules import is_api_key
from kernel.canonical import sha256_hex
from kernel.errors import SilasError
from kernel.tenancy import lookup_scope


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


def all_tenants() -> list[Tenant]:
    """Every tenant: for upkeep that visits each in its own scope."""
    return list(Tenant.objects.all())


def role_of(user: Any) -> Role | None:
    """The user's role in the scope's tenant; None for a stranger."""
    role = Membership.objects.filter(user_id=user.pk).values_list("role", flat=True).first()
    return Role(role) if role else None


def require_role(user: Any, allowed: Collection[Role]) -> Role:
    """The user's role in the scope's tenant, if it is one of `allowed`; raises 403 `forbidden_role` otherwise."""
    role = role_of(user)
    if role is None or role not in allowed:
        raise SilasError("forbidden_role", "Your role does not allow this.", status=403)
    return role
