"""News of the guard for the rooms above. Receivers run inside the settling transaction, after the call's own effect:
what they write stands or falls with it."""

from collections.abc import Mapping
from typing import Any

from apps.guard.schemas import Admitted, BudgetAlert
from kernel.events import Event

# (call, what it returned, the caller's own context): it had its effect.
call_done: Event[[Admitted, Any, Mapping[str, Any]]] = Event("call_done")

# (what was passed): once for each budget, window and threshold, inside the transaction that passed it.
budget_alert: Event[[BudgetAlert]] = Event("budget_alert")
