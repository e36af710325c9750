"""Push notifications about held agents, to everyone who may decide and chose pushes (docs/alerts.md).

One for each hold, claimed by its row. A push gives the risk and a link: nothing about what the agent intends and never
a code, because lock screens, and screens that an agent can read, show it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from apps.approvals.cards.alerts import MAX_PUSHES, Push, build_pushes
from apps.approvals.enums import Risk
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.safety.enums import HoldState
from apps.safety.models import Hold
from apps.safety.rules.holds import approval_risk
from apps.tenants.enums import Capability
from apps.tenants.models import Membership
from apps.tenants.rules import roles_with

_PAGE = "/console/safety/"
_MAX_HOLDS = 200


def claim_notices(moment: datetime) -> list[Push]:
    """Claim the holds that were not pushed yet and return their pushes; inside a scope. Skips locked rows."""
    waiting = Hold.objects.select_for_update(skip_locked=True, no_key=True)
    holds = list(waiting.filter(state=HoldState.OPEN, pushed_at=None).order_by("created_at")[:_MAX_HOLDS])
    if not holds:
        return []
    Hold.objects.filter(pk__in=[hold.pk for hold in holds]).update(pushed_at=moment)
    deciding = Membership.objects.filter(role__in=roles_with(Capability.DECIDE)).values_list("user_id", flat=True)
    # Many holds are one message, with the gravest risk and the age of the oldest.
    messages = [_message(holds)] if len(holds) > MAX_PUSHES else [_message([hold]) for hold in holds]
    due = build_pushes(list(deciding), messages)
    if due:
        record(AuditEvent.ALERTS_SENT, data={"pushes": len(due), "letters": 0})
    return due


def _message(holds: Sequence[Hold]) -> dict[str, object]:
    risk = max((approval_risk(hold.kind) for hold in holds), key=list(Risk).index)
    url = f"{_PAGE}#hold-{holds[0].pk}" if len(holds) == 1 else _PAGE
    since = int(holds[0].created_at.timestamp())
    return {"about": "agent", "count": len(holds), "risk": risk.value, "url": url, "since": since}
