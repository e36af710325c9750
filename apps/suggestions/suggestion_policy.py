"""Whether something may be suggested now, decided from values alone: earlier suggestions and the company's limits.

One suggestion is open at a time for each cooldown key. What was suggested or answered is not suggested again before its
cooldown ends, and what was muted never. The number of open suggestions, and of new ones within any hour, is limited
(spec 5.1.6, 11).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from apps.suggestions.enums import SuggestionState


@dataclass(frozen=True)
class SuggestionLimits:
    cooldown: timedelta = timedelta(minutes=120)
    dedupe: timedelta = timedelta(minutes=180)
    most_open: int = 5
    most_an_hour: int = 6


@dataclass(frozen=True)
class PastSuggestion:
    """An earlier suggestion at the same deployment."""

    key: str
    state: SuggestionState
    created_at: datetime
    expires_at: datetime
    handled_at: datetime | None = None

    def is_open(self, now: datetime) -> bool:
        return self.state is SuggestionState.OPEN and self.expires_at > now


class HoldReason(StrEnum):
    """Why something is not suggested now."""

    OPEN = "open"
    MUTED = "muted"
    COOLDOWN = "cooldown"
    FULL = "full"
    HOURLY = "hourly"


def hold_reason(
    key: str, past: Iterable[PastSuggestion], allowed: SuggestionLimits, *, now: datetime
) -> HoldReason | None:
    past = list(past)
    same = [row for row in past if row.key == key]
    if any(row.is_open(now) for row in same):
        return HoldReason.OPEN
    if any(row.state is SuggestionState.MUTED for row in same):
        return HoldReason.MUTED
    if any(_is_cooling_down(row, allowed, now) for row in same):
        return HoldReason.COOLDOWN
    if sum(row.is_open(now) for row in past) >= allowed.most_open:
        return HoldReason.FULL
    if sum(row.created_at > now - timedelta(hours=1) for row in past) >= allowed.most_an_hour:
        return HoldReason.HOURLY
    return None


def _is_cooling_down(row: PastSuggestion, allowed: SuggestionLimits, now: datetime) -> bool:
    """The cooldown runs from when it was made, and again from when it was answered or expired."""
    ended = row.handled_at or min(row.expires_at, now)
    return row.created_at + allowed.dedupe > now or ended + allowed.cooldown > now
