"""The figures of a period about conversations and about decisions, as the insights page and the REST API show them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from django.core.cache import cache
from django.db.models import Count, Q
from redis.exceptions import RedisError

from apps.approvals.cards import metrics
from apps.approvals.cards.metrics import DayStats, FamilyStats, RiskStats, Totals
from apps.inbox.enums import SlaOutcome, SlaTarget
from apps.inbox.models import SlaClock
from apps.sessions import insights
from apps.sessions.insights import Asked, Day, GateAction, HandOff, Turns
from apps.tenants.models import Deployment
from apps.visitors.ratings import RatingFigures, rating_figures
from kernel.tenancy import current_tenant_id, read_from_replica
from kernel.timezones import first_known_timezone

MAX_DAYS = 366
# Figures of periods longer than this are cached for a minute, because they are slow to count and change little.
UNCACHED_DAYS, CACHE_SECONDS = 7, 60


@dataclass(frozen=True)
class Period:
    """`first` and `last` are days in the time zone, both included; of one deployment, or of all for None."""

    first: date
    last: date
    zone: str
    now: datetime
    deployment: Deployment | None = None

    @property
    def since(self) -> datetime:
        return datetime.combine(self.first, time(), ZoneInfo(self.zone))

    @property
    def until(self) -> datetime:
        """The end of the last day, or now if that comes first."""
        return min(self.now, datetime.combine(self.last + timedelta(days=1), time(), ZoneInfo(self.zone)))

    @property
    def length(self) -> int:
        return (self.last - self.first).days + 1

    @property
    def deployment_id(self) -> UUID | None:
        return self.deployment.pk if self.deployment else None


def today_in(zone: str, moment: datetime) -> date:
    return moment.astimezone(ZoneInfo(first_known_timezone(zone))).date()


def is_readable(first: date, last: date) -> bool:
    """True for a period that is in order, not too long, and of this century."""
    return first.year >= 2000 and first <= last and (last - first).days < MAX_DAYS


@dataclass(frozen=True)
class SlaFigures:
    """Of the clocks with this target that started in the period: how many met it, and how many missed it."""

    target: SlaTarget
    met: int
    missed: int


@dataclass(frozen=True)
class ConversationFigures:
    daily: list[Day]
    turns: Turns
    hand_offs: list[HandOff]
    gates: list[GateAction]
    ratings: RatingFigures
    sla: tuple[SlaFigures, ...] = ()

    @property
    def conversations(self) -> int:
        return sum(day.conversations for day in self.daily)

    @property
    def messages(self) -> int:
        return sum(day.messages for day in self.daily)

    @property
    def with_person(self) -> int:
        return sum(day.with_person for day in self.daily)

    @property
    def resolved_by_bot(self) -> float | None:
        """The share of conversations without a person, or None without conversations."""
        return 1 - self.with_person / self.conversations if self.conversations else None


@dataclass(frozen=True)
class DecisionFigures:
    """`times` counts the decisions that took under 1 s, 1 to 5, 5 to 15, 15 to 30, and longer."""

    totals: Totals
    daily: list[DayStats]
    by_risk: list[RiskStats]
    by_action: list[FamilyStats]
    times: tuple[int, int, int, int, int]


def figures_of(period: Period) -> tuple[ConversationFigures, DecisionFigures]:
    """Both figures of the current tenant, from the replica where there is one."""
    return read_from_replica(lambda: (conversation_figures(period), decision_figures(period)))


def conversation_figures(period: Period) -> ConversationFigures:
    """Return the figures of the current tenant."""
    if period.length <= UNCACHED_DAYS:
        return _count(period)
    key = f"figures:{current_tenant_id()}:{period.first}:{period.last}:{period.zone}:{period.deployment_id}"
    try:
        figures: ConversationFigures | None = cache.get(key)
        if figures is None:
            figures = _count(period)
            cache.set(key, figures, CACHE_SECONDS)
    except RedisError:
        return _count(period)
    return figures


def _count(period: Period) -> ConversationFigures:
    query = Asked(period.since, period.until, period.zone, period.deployment_id)
    return ConversationFigures(
        insights.by_day(query),
        insights.turns(query),
        insights.hand_offs(query),
        insights.gate_actions(query),
        rating_figures(period.deployment, period.since, period.until),
        _sla_figures(period),
    )


def _sla_figures(period: Period) -> tuple[SlaFigures, ...]:
    """By target, those that were set; without clocks that still run in time or were cancelled."""
    clocks = SlaClock.objects.filter(started_at__gte=period.since, started_at__lt=period.until)
    if period.deployment_id:
        clocks = clocks.filter(session__deployment_id=period.deployment_id)
    met, missed = (Count("pk", filter=Q(outcome=outcome)) for outcome in (SlaOutcome.MET, SlaOutcome.MISSED))
    counted = {row[0]: row[1:] for row in clocks.order_by().values_list("target").annotate(met=met, missed=missed)}
    return tuple(SlaFigures(target, *counted[target]) for target in SlaTarget if any(counted.get(target, ())))


def decision_figures(period: Period) -> DecisionFigures:
    """Return the figures of the current tenant (spec 0.5.6)."""
    query = (period.since, period.until, period.deployment_id)
    return DecisionFigures(
        metrics.totals(*query),
        metrics.by_day(*query[:2], zone=period.zone, deployment=period.deployment_id),
        metrics.by_risk(*query),
        metrics.by_family(*query),
        metrics.decision_time_histogram(*query),
    )
