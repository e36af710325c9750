"""Ends of snoozes, and the variables of canned replies. Pure: the caller passes the time."""

from __future__ import annotations

from datetime import datetime, time, timedelta

from apps.inbox.enums import Snooze

MORNING = time(9)
MAX_SNOOZE = timedelta(days=366)
VISITOR_NAME = "{visitor name}"


def snoozed_until(choice: Snooze, *, moment: datetime) -> datetime | None:
    """When a conversation is open again, None for not before its visitor answers; `moment` is now in the zone whose
    mornings are meant."""
    match choice:
        case Snooze.LATER:
            return moment + timedelta(hours=3)
        case Snooze.TOMORROW:
            return _morning(moment, days=1)
        case Snooze.MONDAY:
            return _morning(moment, days=7 - moment.weekday())
        case Snooze.WEEK:
            return moment + timedelta(days=7)
        case Snooze.REPLY:
            return None


def may_rest_until(until: datetime, *, moment: datetime) -> bool:
    """Some time ahead of us, and not for ever."""
    return moment < until <= moment + MAX_SNOOZE


def written_to(text: str, visitor_name: str) -> str:
    """A canned reply as this visitor reads it."""
    return text.replace(VISITOR_NAME, visitor_name)


def _morning(moment: datetime, *, days: int) -> datetime:
    return datetime.combine(moment.date() + timedelta(days=days), MORNING, moment.tzinfo)
