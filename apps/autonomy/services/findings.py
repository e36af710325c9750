"""Resolve findings: a person says that one was dealt with. Its task does not report it again while it lasts."""

from __future__ import annotations

from uuid import UUID

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.autonomy.models import Finding
from apps.tenants.enums import Capability
from apps.tenants.models import User
from apps.tenants.queries import require_role
from apps.tenants.rules import roles_with
from kernel.clock import now
from kernel.errors import NotFound

RESOLVER_ROLES = roles_with(Capability.ANSWER)


def resolve_finding(finding_id: UUID, *, user: User) -> Finding:
    """Mark it as resolved. Safe to repeat: the first time is kept. Raises 403 forbidden_role; `NotFound`."""
    require_role(user, RESOLVER_ROLES)
    rows = Finding.objects.select_for_update(of=("self",), no_key=True).filter(pk=finding_id, quarantined_at=None)
    finding: Finding | None = rows.first()
    if finding is None:
        raise NotFound()
    if finding.resolved_at is None:
        finding.resolved_at, finding.resolved_by = now(), user
        finding.save(update_fields=["resolved_at", "resolved_by"])
        data = {"verb": "resolve"}
        record(AuditEvent.PROPOSAL_DECIDED, actor=f"user:{user.pk}", subject=f"finding:{finding.pk}", data=data)
    return finding
