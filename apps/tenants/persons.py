"""How is something about a person written down, who may belong to several tenants? In each of their chains, in one
transaction with what changed. Called outside of any tenant's scope; tenants come in the order of their ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.tenants.models import Membership
from apps.tenants.queries import memberships_of
from kernel.tenancy import tenant_scope


def record_everywhere(
    user: Any,
    event: AuditEvent,
    *,
    data: Mapping[str, Any] | None = None,
    of: Iterable[Membership] | None = None,
    actor: str = "",
) -> None:
    """About a person, by themselves if nobody else is named. `of`: only those of their memberships."""
    mine = memberships_of(user) if of is None else of
    for membership in sorted(mine, key=lambda one: one.tenant_id):
        with tenant_scope(membership.tenant_id):
            record(event, actor=actor or f"user:{user.pk}", subject=f"user:{user.pk}", data=data)
