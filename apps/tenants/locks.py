"""Which rows does this room lock? A tenant's owners, before one of them may stop being one."""

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
