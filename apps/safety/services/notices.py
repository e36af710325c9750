"""Push notifications about held agents, to everyone who may decide and chose pushes (docs/alerts.md).

One for each hold, claimed by its row. A push gives the risk and a link: nothing about what the agent intends and never
a code, because lock screens, and screens that an agent can read, show it (ADR 66).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from apps.approvals.enums import Risk
from apps.approvals.services.alerts import MAX_PUSHES, Push, build_pushes
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.safety.enums import HoldState
from apps.safety.models import Hold
from apps.safety.rules import approval_risk
from apps.tenants.enums import Capability
from apps.tenants.models import Membership
from apps.tenants.rules import roles_with

SAFETY = "/console/safety/"
_MAX_HOLDS = 200


def claim_notices(moment: datetime) -> list[Push]:
    """Claim the holds that were not pushed yet and return their pushes; inside a scope. Skips locked rows."""
    waiting = Hold.objects.select_for_update(skip_locked=True, no_key=True)
    holds = list(waiting.filter(state=HoldState.OPEN, pushed_at=None).order_by("created_at")[:_MAX_HOLDS])
    if not holds:
        return []
    Hold.objects.filter(pk__in=[hold.pk for hold in holds]).update(pushed_at=moment)
    deciding = Membership.objects.filter(role__in=roles_with(Capability.DECIDE)).values_list("user_id", flat=True)
    due = build_pushes(list(deciding), _messages(holds))
    if due:
        record(AuditEvent.ALERTS_SENT, data={"pushes": len(due), "letters": 0})
    return due


def _messages(holds: Sequence[Hold]) -> list[dict[str, Any]]:
    """One message for each hold, or a single one for many, with the age of the oldest."""
    if len(holds) > MAX_PUSHES:
        return [_message(len(holds), max((approval_risk(hold.kind) for hold in holds), key=_order), holds[0])]
    return [_message(1, approval_risk(hold.kind), hold) for hold in holds]


def _message(count: int, risk: Risk, hold: Hold) -> dict[str, Any]:
    url = f"{SAFETY}#hold-{hold.pk}" if count == 1 else SAFETY
    since = int(hold.created_at.timestamp())
    return {"about": "agent", "count": count, "risk": risk.value, "url": url, "since": since}


def _order(risk: Risk) -> int:
    return list(Risk).index(risk)
