"""Which rows does this room lock? A tenant's owners, before one of them may stop being one; a member whose role
changes, so that what it was is written down truly."""

from __future__ import annotations

from uuid import UUID

from apps.tenants.enums import Role
from apps.tenants.models import Membership


def lock_owners() -> list[UUID]:
    """The memberships of the scope's owners who can log in, locked until the scope ends: of two owners who demote each
    other one comes second, and learns that nobody else is left."""
    owners = Membership.objects.select_for_update(of=("self",), no_key=True).filter(
        role=Role.OWNER, user__is_active=True
    )
    return list(owners.order_by("pk").values_list("pk", flat=True))


def lock_role(membership_id: UUID) -> str:
    """The member's role, locked until the scope ends; empty for somebody who is none any more."""
    rows = Membership.objects.select_for_update(of=("self",), no_key=True).filter(pk=membership_id)
    return rows.values_list("role", flat=True).first() or ""
