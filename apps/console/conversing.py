"""What do the figures of conversations say? Numbers of `sessions.insights` as tiles, drawings and tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.core.cache import cache
from redis.exceptions import RedisError

from apps.console.charts import Columns, columns
from apps.console.period import Period
from apps.console.templatetags.console import percent, seconds
from apps.sessions import insights
from apps.sessions.insights import Asked, Day, GateAction, HandOff, Turns
from apps.sessions.visitors.ratings import RatingFigures, rating_figures
from kernel.tenancy import current_tenant_id


@dataclass(frozen=True)
class Tile:
    """One number, and what it is of."""

    title: str
    value: str
    said: str = ""


@dataclass(frozen=True)
class Conversing:
    daily: list[Day]
    turns: Turns
    hand_offs: list[HandOff]
    gates: list[GateAction]
    ratings: RatingFigures

    @property
    def conversations(self) -> int:
        return sum(one.conversations for one in self.daily)

    @property
    def messages(self) -> int:
        return sum(one.messages for one in self.daily)

    @property
    def with_person(self) -> int:
        return sum(one.with_person for one in self.daily)

    @property
    def contained(self) -> float | None:
        return 1 - self.with_person / self.conversations if self.conversations else None


_BECAUSE = {
    "": "No reason was noted",
    "asked": "The visitor asked for one",
    "unanswered": "An answer failed",
    "work": "Work did not get done",
}


# Of a longer time than so many days the figures are counted once a minute: nobody sees a month move.
FRESH_DAYS, KEPT_SECONDS = 7, 60


def conversing(period: Period) -> Conversing:
    """For the scope's tenant."""
    if period.length <= FRESH_DAYS:
        return _counted(period)
    key = f"insights:{current_tenant_id()}:{period.first}:{period.last}:{period.zone}:{period.deployment_id}"
    try:
        found: Conversing | None = cache.get(key)
        if found is None:
            found = _counted(period)
            cache.set(key, found, KEPT_SECONDS)
    except RedisError:
        return _counted(period)
    return found


def _counted(period: Period) -> Conversing:
    asked = Asked(period.since, period.until, period.zone, period.deployment_id)
    return Conversing(
        insights.by_day(asked),
        insights.turns(asked),
        insights.hand_offs(asked),
        insights.gate_actions(asked),
        rating_figures(period.deployment, period.since, period.until),
    )


def tiles(found: Conversing) -> list[Tile]:
    turns, ratings = found.turns, found.ratings
    return [
        Tile("Conversations", f"{found.conversations:,}", f"{found.messages:,} messages"),
        Tile("Ended without a person", _share(found.contained), f"{found.with_person:,} had one, or wanted one"),
        Tile("Answered", f"{turns.answered:,}", f"of {turns.total:,} messages that were looked at"),
        Tile("With sources", _share(turns.cited_share), "of the answers name where they are from"),
        Tile("Refused by gates", f"{turns.refused:,}", "messages"),
        Tile("Held back", f"{turns.suppressed:,}", "answers, because a person had taken over"),
        Tile("Failed", f"{turns.failed:,}", "messages got no answer"),
        Tile("Time to answer, median", _time(turns.p50), "half of the answers were faster"),
        Tile("Time to answer, 95 of 100", _time(turns.p95), "the slowest five of 100 took longer"),
        Tile("Rating", _score(ratings.mean), f"of 5, from {ratings.count:,} visitors, {ratings.comments:,} with words"),
    ]


def drawn(found: Conversing) -> Columns:
    """Conversations a day, those with a person in them darker."""
    names = [day_name(one.day) for one in found.daily]
    return columns(names, [one.conversations for one in found.daily], [one.with_person for one in found.daily])


def reasons(found: Conversing) -> list[tuple[str, HandOff, str]]:
    """In words, with the time until a person answered."""
    return [(because_of(one.because), one, _time(one.median)) for one in found.hand_offs]


def because_of(code: str) -> str:
    if code.startswith("gate:"):
        return f"The gate {code.removeprefix('gate:').replace('_', ' ')}"
    return _BECAUSE.get(code, code.replace("_", " ").capitalize())


def day_name(day: Any) -> str:
    return f"{day.day} {day:%b}"


def rows(found: Conversing) -> list[tuple[str, str, object]]:
    """Everything as section, name and number: for a file."""
    turns = found.turns
    daily = [
        (f"{section} a day", day.day.isoformat(), getattr(day, name))
        for section, name in (
            ("Conversations", "conversations"),
            ("Messages", "messages"),
            ("With a person", "with_person"),
        )
        for day in found.daily
    ]
    ends = ("total", "answered", "cited", "refused", "suppressed", "stopped", "failed", "p50", "p95")
    became = [("Messages", name, getattr(turns, name)) for name in ends]
    handed = [
        (f"Hand-offs, {name}", because_of(one.because), value)
        for one in found.hand_offs
        for name, value in (("wanted", one.wanted), ("answered", one.answered), ("median seconds", one.median))
    ]
    acts = ("blocked", "asked", "rewrote")
    gates = [(f"Gates, {name}", one.gate, getattr(one, name)) for one in found.gates for name in acts]
    rated = [("Ratings", f"{score} of 5", found.ratings.by_score.get(score, 0)) for score in range(1, 6)]
    return [*daily, *became, *handed, *gates, *rated, ("Ratings", "mean", found.ratings.mean)]


def _share(share: float | None) -> str:
    return "none yet" if share is None else percent(share)


def _score(mean: float | None) -> str:
    return "none yet" if mean is None else f"{mean:.1f}"


def _time(number: float | None) -> str:
    return "none yet" if number is None else seconds(number)
