"""Daily figures of the last two weeks for the console: directives, holds, blocks and prompts per action.

Reads of the scope's tenant; days are in the installation's time zone.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from django.db.models import Count, Q
from django.db.models.functions import TruncDate
from django.utils import timezone

from apps.safety.enums import Decision, HoldKind
from apps.safety.models import Hold, Step

DAYS = 14


@dataclass(frozen=True)
class Day:
    """Figures of one day: directives given (`told`), how many of them paused or stopped (`held`), and blocks."""

    date: date
    told: int
    held: int
    blocks: int


@dataclass(frozen=True)
class Trends:
    """`asked`: prompts to people; `actions`: the distinct actions that they were for."""

    days: tuple[Day, ...]
    asked: int
    actions: int

    @property
    def prompts(self) -> float:
        """Prompts per action that had to wait. More than one means that people approve the same thing twice."""
        return self.asked / self.actions if self.actions else 0.0


def trends(days: int = DAYS) -> Trends:
    today = timezone.localdate()
    first = today - timedelta(days=days - 1)
    since = timezone.make_aware(datetime.combine(first, time()))
    steps = Step.objects.filter(created_at__gte=since).order_by()
    daily = steps.annotate(day=TruncDate("created_at")).values("day")
    counted = daily.annotate(told=Count("id"), held=Count("id", filter=~Q(decision=Decision.GO)))
    by_day = {row["day"]: (row["told"], row["held"]) for row in counted}
    recent = Hold.objects.filter(created_at__gte=since).order_by()
    holds = list(recent.values_list("kind", "created_at", "digest", "execution_id"))
    blocks = Counter(timezone.localdate(created) for kind, created, _, _ in holds if kind == HoldKind.BLOCK)
    dates = [first + timedelta(days=offset) for offset in range(days)]
    rows = tuple(Day(day, *by_day.get(day, (0, 0)), blocks[day]) for day in dates)
    return Trends(rows, len(holds), len({(digest, execution) for _, _, digest, execution in holds}))
