"""Plans of tasks and projects. Opened and worded by `apps.work.services.approval_requests`."""

from __future__ import annotations

from apps.approvals.cards.kinds.base import Kind
from apps.approvals.cards.schemas import BoundPayload, Key, Line
from apps.approvals.enums import ApprovalScope, CardKind
from kernel.language import gettext_lazy as _


class PlanPayload(BoundPayload):
    id: Key
    title: Line
    body: str


class Plan(Kind):
    kind = CardKind.PLAN
    tells_reason = True
    label = _("Plan")
    payload = PlanPayload
    scopes = frozenset({ApprovalScope.FULL_PLAN})
