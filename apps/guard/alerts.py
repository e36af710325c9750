"""Who hears that money is running out? The log, and whoever is connected to `signals.budget_alert`, in one transaction
with what passed the threshold. Once for each budget, window and threshold: the row remembers what was told.

Visitors' own budgets tell nobody: there are as many as visitors.
"""

from __future__ import annotations

from collections.abc import Iterable

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.guard import signals
from apps.guard.enums import Holder
from apps.guard.schemas import BudgetAlert


def tell(alerts: Iterable[BudgetAlert]) -> None:
    for alert in alerts:
        if alert.holder != Holder.VISITOR:
            data = {"holder": alert.holder, "period": alert.period, "percent": alert.threshold}
            record(AuditEvent.BUDGET_ALERT, subject=f"budget:{alert.budget_id}", data=data)
            signals.budget_alert(alert)
