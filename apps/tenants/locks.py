"""Row locks of this room: a tenant's owners, before one of them loses the role; a member whose role changes, so that
the previous role is audited correctly; a deployment whose settings are compared with those that were read."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from apps.tenants.enums import Role
from apps.tenants.models import Deployment, Membership
from kernel.errors import NotFound


def lock_owners() -> list[UUID]:
    """Lock the memberships of the scope's active owners until the scope ends. Of two owners who demote each other, the
    second waits and finds that no other owner is left."""
    owners = Membership.objects.select_for_update(of=("self",), no_key=True).filter(
        role=Role.OWNER, user__is_active=True
    )
    # In one order for everyone, so that two callers cannot lock each other out.
    return list(owners.order_by("pk").values_list("pk", flat=True))


def lock_role(membership_id: UUID) -> str:
    """Lock the membership until the scope ends; returns its role, empty if it no longer exists."""
    rows = Membership.objects.select_for_update(of=("self",), no_key=True).filter(pk=membership_id)
    return rows.values_list("role", flat=True).first() or ""


def lock_members(user_ids: Iterable[UUID]) -> None:
    """Lock the memberships of these users until the scope ends, in the order of `lock_owners`."""
    rows = Membership.objects.select_for_update(of=("self",), no_key=True).filter(user_id__in=list(user_ids))
    list(rows.order_by("pk").values_list("pk", flat=True))


def lock_deployment(deployment_id: UUID) -> Deployment:
    """Lock a deployment until the scope ends. Raises `NotFound` for any other tenant's."""
    rows = Deployment.objects.select_for_update(of=("self",), no_key=True)
    deployment: Deployment | None = rows.filter(pk=deployment_id).first()
    if deployment is None:
        raise NotFound()
    return deployment
