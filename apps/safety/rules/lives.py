"""How long do codes live, and how often may somebody be wrong? Decided from values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

MOST_FAILURES = 10
WINDOW = timedelta(seconds=60)
LONGEST_LOCK = timedelta(hours=1)
FORGIVEN_AFTER = timedelta(days=1)


def is_over(expires_at: datetime, now: datetime) -> bool:
    """At the very microsecond at which it expires, it has."""
    return now >= expires_at


@dataclass(frozen=True)
class Tries:
    """What is known of somebody's wrong tries."""

    failures: int
    window_start: datetime
    locked_until: datetime | None = None
    strikes: int = 0


def wait_seconds(tries: Tries, now: datetime) -> int:
    """How long they have to wait before the next try; 0 when they need not."""
    if tries.locked_until is None or now >= tries.locked_until:
        return 0
    return max(1, round((tries.locked_until - now).total_seconds()))


def after_failure(tries: Tries, now: datetime) -> Tries:
    """The tenth wrong try in a minute locks for a minute, the next time for two, then four, up to an hour."""
    strikes = 0 if now - tries.window_start > FORGIVEN_AFTER else tries.strikes
    if now - tries.window_start >= WINDOW:
        tries = Tries(0, now, None, strikes)
    failures = tries.failures + 1
    if failures < MOST_FAILURES:
        return Tries(failures, tries.window_start, tries.locked_until, strikes)
    lock = min(WINDOW * 2 ** min(strikes, 10), LONGEST_LOCK)
    return Tries(0, now, now + lock, strikes + 1)
