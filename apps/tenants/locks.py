"""Row locks of this room: a tenant's owners, before one of them loses the role; a member whose role changes, so that
the previous role is audited correctly."""

from __future__ import annotations

from uuid import UUID

from apps.tenants.enums import Role
from apps.tenants.models import Membership


def lock_owners() -> list[UUID]:
    """Lock the memberships of the scope's active owners until the scope ends. Of two owners who demote each other, the
    second waits and finds that no other owner is left."""
    owners = Membership.objects.select_for_update(of=("self",), no_key=True).filter(
        role=Role.OWNER, user__is_active=True
    )
    return list(owners.order_by("pk").values_list("pk", flat=True))


def lock_role(membership_id: UUID) -> str:
    """Lock the membership until the scope ends; returns its role, empty if it no longer exists."""
    rows = Membership.objects.select_for_update(of=("self",), no_key=True).filter(pk=membership_id)
    return rows.values_list("role", flat=True).first() or ""
