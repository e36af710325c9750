"""Alert about spending: an audit entry and `signals.budget_alert`, in the transaction that passed a threshold.

Sent once for each budget, window and threshold, which the budget's row remembers. Visitors' own budgets send no alerts,
because there are as many as visitors.
"""

from __future__ import annotations

from collections.abc import Iterable

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.guard import signals
from apps.guard.enums import Holder
from apps.guard.schemas import BudgetAlert


def send_budget_alerts(alerts: Iterable[BudgetAlert]) -> None:
    for alert in alerts:
        if alert.holder != Holder.VISITOR:
            data = {"holder": alert.holder, "period": alert.period, "percent": alert.threshold}
            record(AuditEvent.BUDGET_ALERT, subject=f"budget:{alert.budget_id}", data=data)
            signals.budget_alert(alert)
