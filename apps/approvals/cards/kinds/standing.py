"""Standing approvals of goals. Opened and worded by `apps.work.services.goals`."""

from __future__ import annotations

from apps.approvals.cards.kinds.base import Kind
from apps.approvals.cards.kinds.plan import PlanPayload
from apps.approvals.enums import ApprovalScope, CardKind, Pace
from kernel.language import gettext_lazy as _


class Standing(Kind):
    kind = CardKind.STANDING
    label = _("Standing permission")
    payload = PlanPayload
    scopes = frozenset({ApprovalScope.STANDING})
    pace = Pace.CALM
    plan_heading = _("What it may start each time")
    revoking_note = _("From now on each action needs its own approval again.")
