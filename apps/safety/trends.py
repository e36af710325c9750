"""How did the last days go? What agents were told, who was stopped, and how often a person was asked for one action.

Reads of the scope's tenant for the console's page; days are the installation's own.
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
    """`held` of the `told` directives were a pause or a stop."""

    date: date
    told: int
    held: int
    blocks: int


@dataclass(frozen=True)
class Trends:
    days: tuple[Day, ...]
    asked: int
    actions: int

    @property
    def prompts(self) -> float:
        """How often a person was asked for each action that had to wait; more than one tires people."""
        return self.asked / self.actions if self.actions else 0.0


def trends(days: int = DAYS) -> Trends:
    today = timezone.localdate()
    first = today - timedelta(days=days - 1)
    since = timezone.make_aware(datetime.combine(first, time()))
    steps = Step.objects.filter(created_at__gte=since).order_by()
    daily = steps.annotate(day=TruncDate("created_at")).values("day")
    counted = daily.annotate(told=Count("id"), held=Count("id", filter=~Q(decision=Decision.GO)))
    told = {each["day"]: (each["told"], each["held"]) for each in counted}
    recent = Hold.objects.filter(created_at__gte=since).order_by()
    holds = list(recent.values_list("kind", "created_at", "digest", "execution_id"))
    blocks = Counter(timezone.localdate(made) for kind, made, _, _ in holds if kind == HoldKind.BLOCK)
    dates = [first + timedelta(days=at) for at in range(days)]
    rows = tuple(Day(each, *told.get(each, (0, 0)), blocks[each]) for each in dates)
    return Trends(rows, len(holds), len({(digest, execution) for _, _, digest, execution in holds}))
