"""Lifting a hold: its risk, expiry of codes and lockout after wrong ones."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from apps.approvals.enums import Risk
from apps.safety.enums import HoldKind

MAX_FAILURES = 10
WINDOW = timedelta(seconds=60)
MAX_LOCK = timedelta(hours=1)
STRIKES_EXPIRE_AFTER = timedelta(days=1)
_RISKS = {HoldKind.CONFIRM: Risk.MEDIUM, HoldKind.VERIFY: Risk.HIGH, HoldKind.BLOCK: Risk.IRREVERSIBLE}


def approval_risk(kind: str) -> Risk:
    """Risk of lifting a hold of this kind; the approvals policy says whether it requires a passkey."""
    return _RISKS[HoldKind(kind)]


def is_expired(expires_at: datetime, now: datetime) -> bool:
    """True from the moment `expires_at` is reached (inclusive)."""
    return now >= expires_at


@dataclass(frozen=True)
class Attempts:
    """Recent failed attempts of one agent or caller. `strikes` counts the lockouts so far."""

    failures: int
    window_start: datetime
    locked_until: datetime | None = None
    strikes: int = 0


def wait_seconds(attempts: Attempts, now: datetime) -> int:
    """Seconds before the next attempt is accepted; 0 when it is accepted now."""
    if attempts.locked_until is None or now >= attempts.locked_until:
        return 0
    return max(1, round((attempts.locked_until - now).total_seconds()))


def after_failure(attempts: Attempts, now: datetime) -> Attempts:
    """Count a failure. The tenth within a minute locks for one minute, then two, four and so on, up to an hour."""
    strikes = 0 if now - attempts.window_start > STRIKES_EXPIRE_AFTER else attempts.strikes
    if now - attempts.window_start >= WINDOW:
        attempts = Attempts(0, now, None, strikes)
    failures = attempts.failures + 1
    if failures < MAX_FAILURES:
        return Attempts(failures, attempts.window_start, attempts.locked_until, strikes)
    lock = min(WINDOW * 2 ** min(strikes, 10), MAX_LOCK)
    return Attempts(0, now, now + lock, strikes + 1)
