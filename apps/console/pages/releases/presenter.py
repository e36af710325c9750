"""Differences between snapshots in words, and the figures of each release."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from django.db.models import Sum
from django.utils.translation import gettext as _

from apps.guard.models import GuardedRun
from apps.persona.enums import Axis, Preset
from apps.releases.enums import ChangeKind
from apps.releases.models import Release
from apps.releases.schemas import Change
from apps.sessions import insights
from apps.sessions.insights import Asked
from apps.sessions.models import ChatSession
from apps.visitors.ratings import rating_figures
from apps.work.enums import WorkItemStatus
from apps.work.models import WorkItem
from kernel.clock import now
from kernel.language import LANGUAGES

# What visitors get from a release; everything else is the company's and only compared.
_SERVED = frozenset(
    {
        ChangeKind.PERSONA,
        ChangeKind.MODEL,
        ChangeKind.PRESET,
        ChangeKind.AXIS,
        ChangeKind.GREETING,
        ChangeKind.SUGGESTIONS,
        ChangeKind.LANGUAGES,
    }
)


@dataclass(frozen=True)
class Line:
    """One difference as it is shown; `served`: visitors notice it."""

    label: str
    before: str
    after: str
    served: bool


@dataclass(frozen=True)
class Figures:
    """A release's conversations: how many, how many without a person, work verified as done, ratings, and cost in US
    dollars for models."""

    release: Release
    conversations: int
    resolved: float | None
    verified: int
    rating: float | None
    ratings: int
    cost: Decimal


def lines_of(changes: Iterable[Change]) -> list[Line]:
    return [
        Line(_label(change), _value(change, change.before), _value(change, change.after), change.kind in _SERVED)
        for change in changes
    ]


def _label(change: Change) -> str:
    kind = str(ChangeKind(change.kind).label)
    if change.kind == ChangeKind.AXIS:
        return str(Axis(change.name).label) if change.name in Axis.values else change.name
    return f"{kind}: {change.name.removesuffix(' *')}" if change.name else kind


def _value(change: Change, value: str) -> str:
    if not value:
        return ""
    if change.kind == ChangeKind.PRESET:
        return str(Preset(value).label)
    if change.kind == ChangeKind.AXIS:
        return f"{value}\N{NO-BREAK SPACE}%"
    if change.kind == ChangeKind.LANGUAGES:
        return ", ".join(str(LANGUAGES.get(code, code)) for code in value.split(", "))
    if change.kind == ChangeKind.GATE:
        return _("version {number}").format(number=value)
    if change.kind == ChangeKind.SKILL:
        return _("content {digest}").format(digest=value[:12])
    if change.kind == ChangeKind.KNOWLEDGE:
        return _("{number} documents").format(number=value)
    return value


def figures_of(releases: Iterable[Release], zone: str) -> list[Figures]:
    """Of conversations that have the release now, from when it was published."""
    return [_figures(release, zone) for release in releases]


def _figures(release: Release, zone: str) -> Figures:
    until = now() + timedelta(seconds=1)
    asked = Asked(release.published_at, until, zone, release.deployment_id, release.pk)
    days = insights.by_day(asked)
    conversations = sum(day.conversations for day in days)
    with_person = sum(day.with_person for day in days)
    sessions = ChatSession.objects.filter(release=release, is_test=False)
    ratings = rating_figures(release.deployment, release.published_at, until, release=release)
    runs = GuardedRun.objects.filter(pk__in=sessions.exclude(run_id=None).values("run_id"))
    # Work is done only by a check outside of the agent.
    verified = WorkItem.objects.filter(session_id__in=sessions.values("pk"), status=WorkItemStatus.DONE)
    return Figures(
        release=release,
        conversations=conversations,
        resolved=1 - with_person / conversations if conversations else None,
        verified=verified.count(),
        rating=ratings.mean,
        ratings=ratings.count,
        cost=runs.aggregate(total=Sum("cost_total"))["total"] or Decimal(0),
    )
