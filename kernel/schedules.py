"""Compute when a cron schedule is due next, in a time zone. Parsed by cronsim, with the rules of Debian's cron.

If day of month and day of week are both restricted, either matches. A time that daylight saving skips runs right after
the gap; one that occurs twice runs once. A schedule that is never due is refused. Pure.
"""

from __future__ import annotations

from datetime import UTC, datetime

from cronsim import CronSim, CronSimError

from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.timezones import get_timezone


def next_due(schedule: str, *, after: datetime, zone: str) -> datetime:
    """The first moment after `after`, in UTC. Raises `SilasError("bad_schedule")`."""
    if len(schedule.split()) != 5:
        raise _bad()
    try:
        moment: datetime = next(CronSim(schedule, after.astimezone(get_timezone(zone))))
    except (CronSimError, StopIteration):
        raise _bad() from None
    return moment.astimezone(UTC)


def upcoming(schedule: str, *, after: datetime, zone: str, many: int) -> list[datetime]:
    """The next `many` moments after `after`, in UTC. Raises `SilasError("bad_schedule")`."""
    moments: list[datetime] = []
    for _ in range(many):
        moments.append(next_due(schedule, after=moments[-1] if moments else after, zone=zone))
    return moments


def describe(schedule: str) -> str:
    """The schedule in English, such as `At 02:00 every day`. Raises `SilasError("bad_schedule")`."""
    try:
        return str(CronSim(schedule, datetime(2000, 1, 1)).explain())  # noqa: DTZ001 (a start; no clock is asked)
    except CronSimError:
        raise _bad() from None


def _bad() -> SilasError:
    return SilasError(ErrorCode.BAD_SCHEDULE)
