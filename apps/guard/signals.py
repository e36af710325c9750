"""News of the guard for the rooms above. Receivers run inside the settling transaction, after the call's own effect:
what they write stands or falls with it."""

from collections.abc import Mapping
from typing import Any

from apps.guard.schemas import Admitted, BudgetAlert
from kernel.events import Event

# What names the attempt that keeps a call, in its caller's own context.
ATTEMPT = "attempt"
# (call, what it returned, the caller's own context): a call that an attempt keeps had its effect. Nobody is told of any
# other, so that its settlement can be one statement.
call_done: Event[[Admitted, Any, Mapping[str, Any]]] = Event("call_done")

# (what was passed): once for each budget, window and threshold, inside the transaction that passed it.
budget_alert: Event[[BudgetAlert]] = Event("budget_alert")
