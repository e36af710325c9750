"""May this be suggested now? Decided from values alone: what was suggested before, and what a company allows.

Always holds: of one cooldown key one is open; what was suggested or answered is not suggested again before its time,
and what somebody muted never; so many wait, and so many are new within any hour (spec 5.1.6, 11).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from apps.autonomy.enums import SuggestionState


@dataclass(frozen=True)
class SuggestionLimits:
    cooldown: timedelta = timedelta(minutes=120)
    dedupe: timedelta = timedelta(minutes=180)
    most_open: int = 5
    most_an_hour: int = 6


@dataclass(frozen=True)
class PastSuggestion:
    """A suggestion that was made at the same deployment."""

    key: str
    state: SuggestionState
    created_at: datetime
    expires_at: datetime
    handled_at: datetime | None = None

    def is_open(self, now: datetime) -> bool:
        return self.state is SuggestionState.OPEN and self.expires_at > now


class HoldReason(StrEnum):
    """Why not."""

    OPEN = "open"
    MUTED = "muted"
    COOLDOWN = "cooldown"
    FULL = "full"
    HOURLY = "hourly"


def hold_reason(
    key: str, past: Iterable[PastSuggestion], allowed: SuggestionLimits, *, now: datetime
) -> HoldReason | None:
    past = list(past)
    same = [each for each in past if each.key == key]
    if any(each.is_open(now) for each in same):
        return HoldReason.OPEN
    if any(each.state is SuggestionState.MUTED for each in same):
        return HoldReason.MUTED
    if any(_is_warm(each, allowed, now) for each in same):
        return HoldReason.COOLDOWN
    if sum(each.is_open(now) for each in past) >= allowed.most_open:
        return HoldReason.FULL
    if sum(each.created_at > now - timedelta(hours=1) for each in past) >= allowed.most_an_hour:
        return HoldReason.HOURLY
    return None


def _is_warm(each: PastSuggestion, allowed: SuggestionLimits, now: datetime) -> bool:
    """It counts from when it was made, and again from when somebody answered it, or nobody did."""
    ended = each.handled_at or min(each.expires_at, now)
    return each.created_at + allowed.dedupe > now or ended + allowed.cooldown > now
