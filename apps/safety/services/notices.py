"""Pushes about agents that wait, to everybody who may let them go on and chose pushes (docs/alerts.md).

Once for each hold, claimed by its row. A push says how grave and where to look: no word of what the agent intends, and
never a code, because it stands on lock screens and on whatever screen an agent may see (ADR 66).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from apps.approvals.enums import Risk
from apps.approvals.services.alerts import MOST_PUSHES, Push, pushes_to
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.safety.enums import HoldState
from apps.safety.models import Hold
from apps.safety.rules import press_risk
from apps.tenants.enums import Capability
from apps.tenants.models import Membership
from apps.tenants.rules import roles_with

SAFETY = "/console/safety/"
_MOST = 200


def claim_notices(moment: datetime) -> list[Push]:
    """What is to be pushed now, noted as told; inside a scope. Whoever looks meanwhile passes the same holds by."""
    waiting = Hold.objects.select_for_update(skip_locked=True, no_key=True)
    holds = list(waiting.filter(state=HoldState.OPEN, pushed_at=None).order_by("created_at")[:_MOST])
    if not holds:
        return []
    Hold.objects.filter(pk__in=[hold.pk for hold in holds]).update(pushed_at=moment)
    deciding = Membership.objects.filter(role__in=roles_with(Capability.DECIDE)).values_list("user_id", flat=True)
    due = pushes_to(list(deciding), _said(holds))
    if due:
        record(AuditEvent.ALERTS_SENT, data={"pushes": len(due), "letters": 0})
    return due


def _said(holds: Sequence[Hold]) -> list[dict[str, Any]]:
    """One message a hold; of many at once a single one, as old as the oldest."""
    if len(holds) > MOST_PUSHES:
        return [_words(len(holds), max((press_risk(hold.kind) for hold in holds), key=_order), holds[0])]
    return [_words(1, press_risk(hold.kind), hold) for hold in holds]


def _words(count: int, risk: Risk, hold: Hold) -> dict[str, Any]:
    url = f"{SAFETY}#hold-{hold.pk}" if count == 1 else SAFETY
    since = int(hold.created_at.timestamp())
    return {"about": "agent", "count": count, "risk": risk.value, "url": url, "since": since}


def _order(risk: Risk) -> int:
    return list(Risk).index(risk)
