"""Count what an item has used, from the guard's own record of its run, which survives a lost worker (contract silas
5.1)."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db.models import Max
from django.db.models.functions import Coalesce

from apps.guard.models import GuardedRun, ToolCall
from apps.work.budgets import BudgetUsed


def with_run_usage(used: BudgetUsed, run_id: UUID | None) -> BudgetUsed:
    """Return the counters with the run's model tokens and cost, including what lost calls may have cost."""
    run = GuardedRun.objects.filter(pk=run_id).first() if run_id else None
    if run is None:
        return used
    # The larger of the two: calls of a lost worker are in the guard's record alone.
    tokens = max(used.tokens, run.input_tokens + run.output_tokens)
    cost = max(used.cost_usd, run.cost_total + run.cost_reserved)
    return used.model_copy(update={"tokens": tokens, "cost_usd": cost})


def seconds_observed(run_id: UUID | None, *, since: datetime) -> float:
    """Minimum duration of an attempt that was not concluded: until the last call that the guard recorded."""
    calls = ToolCall.objects.filter(run_id=run_id, created_at__gte=since)
    last: datetime | None = calls.aggregate(last=Max(Coalesce("settled_at", "created_at")))["last"]
    return round(max(0.0, (last - since).total_seconds()), 3) if last else 0.0
