"""Signals of the guard. Receivers run inside the settling transaction, after the call's own effect, and commit or roll
back with it."""

from collections.abc import Mapping

from apps.guard.schemas import Admitted, BudgetFacts
from kernel.events import Event

# The key of a call's context that names the attempt which records the call.
ATTEMPT = "attempt"
# (call, its result, the caller's context): a call had its effect. Sent only for calls of an attempt, so that any other
# call is settled in one statement.
call_done: Event[[Admitted, object, Mapping[str, object]]] = Event("call_done")

# (budget, threshold): so many percent of its limit are spent. Sent once for each budget, window and threshold, inside
# the transaction that passed it.
budget_alert: Event[[BudgetFacts, int]] = Event("budget_alert")
