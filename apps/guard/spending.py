"""What was spent, on what, and how much is left? Read for people's eyes, inside a tenant scope; nothing decides by it.

Amounts are what calls have committed: charged, and reserved while they are under way.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db.models import F, Q, Sum

from apps.guard import rules
from apps.guard.enums import Origin, RunStatus
from apps.guard.models import Budget, GuardedRun, SpendEntry
from apps.guard.schemas import ZERO
from kernel.clock import now

_RECENT = timedelta(days=2)


@dataclass(frozen=True)
class BudgetLine:
    """A budget in its present window. `share` is what is gone of the limit, charged and reserved; 1 for one of 0."""

    holder: str
    ref: UUID
    period: str
    limit: Decimal
    spent: Decimal
    reserved: Decimal
    told: int
    paused: bool

    @property
    def left(self) -> Decimal:
        return max(self.limit - self.spent - self.reserved, ZERO)

    @property
    def share(self) -> float:
        return float((self.spent + self.reserved) / self.limit) if self.limit else 1.0


def budget_lines(day: date) -> list[BudgetLine]:
    """The limits of company, chatbots and tasks; visitors' own are as many as visitors."""
    rows = Budget.objects.filter(visitor_ref=None).order_by(
        F("deployment_id").asc(nulls_first=True), F("task_ref").asc(nulls_first=True), "period"
    )
    return [_line(row, day) for row in rows]


def highest_alert(day: date) -> int:
    """The highest threshold (percent) that any of those limits has passed in its present window; 0 for none."""
    rows = Budget.objects.filter(visitor_ref=None, alerted__gt=0).values_list("period", "window_start", "alerted")
    present = (told for period, window, told in rows if window == rules.present_window(period, day, window))
    return max(present, default=0)


def spent_by_day(since: date, until: date) -> list[tuple[date, Decimal]]:
    """Every day from `since` to `until`, those without a cent too."""
    found = dict(_spent(since).values_list("day").annotate(sum=Sum("amount")))
    days = (since + timedelta(days=place) for place in range((until - since).days + 1))
    return [(day, found.get(day, ZERO)) for day in days]


def spent_by(field: str, since: date) -> list[tuple[Any, Decimal]]:
    """By `model`, `purpose` or `deployment_id`, the dearest first."""
    return list(_spent(since).values_list(field).annotate(sum=Sum("amount")).order_by("-sum", field))


def running_with_a_cap(most: int) -> list[GuardedRun]:
    """The newest runs of the last days that go on and have cost something, or work unattended, within a cap."""
    costs = Q(cost_total__gt=0) | Q(cost_reserved__gt=0) | ~Q(origin=Origin.CHAT)
    runs = GuardedRun.objects.filter(costs, status=RunStatus.RUNNING, started_at__gte=now() - _RECENT)
    return list(runs.filter(limits__has_key="cost_usd").order_by("-started_at")[:most])


def _spent(since: date) -> Any:
    return SpendEntry.objects.filter(day__gte=since)


def _line(row: Budget, day: date) -> BudgetLine:
    window = rules.present_window(row.period, day, row.window_start)
    present = row.window_start == window
    return BudgetLine(
        holder=row.holder,
        ref=row.ref,
        period=row.period,
        limit=row.limit_usd or ZERO,
        spent=row.spent if present else ZERO,
        reserved=row.reserved if present else ZERO,
        told=row.alerted if present else 0,
        paused=row.paused_in == window,
    )
