"""Read runs, pauses and spending. Inside a tenant scope.

Spending is for display and decides nothing. Its amounts are what calls have committed: charged, and reserved while they
are under way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import F, Q, QuerySet, Sum

from apps.guard import rules
from apps.guard.enums import OnLimit, Origin, Pause, Period, RunStatus
from apps.guard.locks import current_days
from apps.guard.models import Budget, GuardedRun, SpendEntry, SpendingPolicy, SystemControl
from apps.guard.schemas import ZERO, ApprovedCalls, BudgetFacts, Limits
from kernel.clock import now

_RECENT = timedelta(days=2)


def is_run_for(
    run_id: UUID, origin: Origin, owner_ref: UUID, *, limits: Limits, approval: ApprovedCalls | None
) -> bool:
    """True if this run belongs to the owner, with exactly these limits and approved calls."""
    run = GuardedRun.objects.filter(pk=run_id, origin=origin, owner_ref=owner_ref).first()
    return run is not None and (run.frozen_limits, run.approved) == (limits, approval)


def has_content_marks(owner_ref: UUID) -> bool:
    """True if a call of the owner's runs returned content in which a gate found instructions to the assistant."""
    return bool(GuardedRun.objects.filter(owner_ref=owner_ref, content_marks__gt=0).exists())


@dataclass(frozen=True)
class Pauses:
    """What is paused in this tenant: by an administrator, and by a reached limit. The key None is the whole tenant."""

    controls: Mapping[UUID | None, frozenset[str]] = field(default_factory=dict)
    limits: frozenset[UUID | None] = frozenset()
    on_limit: str = OnLimit.PAUSE_ALL

    def stops(self, deployment_id: UUID, *, critical: bool) -> bool:
        """True if R5 would refuse the first call of an unattended run, so that it need not start."""
        scopes = (None, deployment_id)
        if any(rules.is_paused(self.controls.get(scope, frozenset()), critical=critical) for scope in scopes):
            return True
        return not self.limits.isdisjoint(scopes) and rules.limit_stops(self.on_limit, critical=critical)


def current_pauses() -> Pauses:
    """Return what is paused now. A limit's pause ends by itself, with its window."""
    controls: dict[UUID | None, frozenset[str]] = {}
    for deployment_id, pause in SystemControl.objects.exclude(pause=Pause.NONE).values_list("deployment_id", "pause"):
        controls[deployment_id] = controls.get(deployment_id, frozenset()) | {pause}
    paused = list(
        Budget.objects.filter(paused_in__isnull=False, visitor_ref=None, task_ref=None).values_list(
            "deployment_id", "period", "paused_in"
        )
    )
    day = current_days()[0] if paused else date.min
    limits = frozenset(pk for pk, period, window in paused if window and rules.current_pause([(period, window)], day))
    on_limit = SpendingPolicy.objects.values_list("on_limit", flat=True).first()
    return Pauses(controls, limits, on_limit or OnLimit.PAUSE_ALL)


def tenants_with_lost_calls() -> list[UUID]:
    """Return the tenants with calls that should have ended by now. Outside of any scope."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT guard_lost_calls()")
        return [tenant_id for (tenant_id,) in cursor.fetchall()]


def budget_lines(day: date) -> list[BudgetFacts]:
    """Return the budgets of tenant, deployments and tasks; those of visitors are as many as visitors."""
    rows = Budget.objects.filter(visitor_ref=None).order_by(
        F("deployment_id").asc(nulls_first=True), F("task_ref").asc(nulls_first=True), "period"
    )
    return [row.in_window(rules.current_window(row.period, day, row.window_start)) for row in rows]


def cost_of_run(run_id: UUID) -> Decimal:
    """Return what the calls of a run have cost."""
    return GuardedRun.objects.values_list("cost_total", flat=True).get(pk=run_id)


def tightest_budget(deployment_id: UUID, period: Period) -> BudgetFacts | None:
    """Return which limit of the company or of this chatbot refuses first: one that pauses, else the one with the least
    left. None while they have no limit."""
    rows = Budget.objects.filter(visitor_ref=None, task_ref=None, period=period)
    day = current_days()[0]
    own = rows.filter(Q(deployment_id=None) | Q(deployment_id=deployment_id))
    facts = [row.in_window(rules.current_window(row.period, day, row.window_start)) for row in own]
    return min(facts, key=lambda budget: (not budget.is_paused, budget.left), default=None)


def highest_alert(day: date) -> int:
    """Return the highest threshold (percent) that any of those budgets has passed in its current window; 0 for none."""
    rows = Budget.objects.filter(visitor_ref=None, alerted__gt=0).values_list("period", "window_start", "alerted")
    current = (alerted for period, window, alerted in rows if window == rules.current_window(period, day, window))
    return max(current, default=0)


def spent_by_day(since: date, until: date) -> list[tuple[date, Decimal]]:
    """Return what was spent on each day from `since` to `until`, including days without spending."""
    amounts = dict(_spent(since).values_list("day").annotate(sum=Sum("amount")))
    days = (since + timedelta(days=offset) for offset in range((until - since).days + 1))
    return [(day, amounts.get(day, ZERO)) for day in days]


def spent_by(field: str, since: date) -> list[tuple[Any, Decimal]]:
    """Return what was spent by `model`, `purpose` or `deployment_id`, the most expensive first."""
    return list(_spent(since).values_list(field).annotate(sum=Sum("amount")).order_by("-sum", field))


def running_with_a_cap(most: int) -> list[GuardedRun]:
    """Return the newest running runs of the last days that have a cap, and cost something or work unattended."""
    costs = Q(cost_total__gt=0) | Q(cost_reserved__gt=0) | ~Q(origin=Origin.CHAT)
    runs = GuardedRun.objects.filter(costs, status=RunStatus.RUNNING, started_at__gte=now() - _RECENT)
    return list(runs.filter(limits__has_key="cost_usd").order_by("-started_at")[:most])


def _spent(since: date) -> QuerySet[SpendEntry]:
    entries: QuerySet[SpendEntry] = SpendEntry.objects.filter(day__gte=since)
    return entries
