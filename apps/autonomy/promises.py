"""Find promises with a time in what staff or a bot said: "I will write to you within 2 days". Pure.

Deliberately narrow: a first person who will do something, and a time that can be counted. English and German.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

_WILL = re.compile(
    r"\b(?:I|we|somebody|someone|a colleague)\b[^.!?]{0,60}?(?:\bwill\b|\bshall\b|['\u2019]ll\b)"
    r"|\b(?:ich|wir)\b[^.!?]{0,40}\b(?:werde|werden|melde|melden|schicke|schicken)\b"
    r"|\b(?:werde|werden|melde|melden|schicke|schicken)\s+(?:ich|wir|mich|uns)\b",
    re.IGNORECASE,
)
_WITHIN = re.compile(
    r"\b(?:within|in|innerhalb von)\s+(?:the next\s+)?(\d{1,2}|an?|one|two|three|einer|einem|zwei|drei)\s+"
    r"(working days?|business days?|hours?|days?|weeks?|werktagen?|arbeitstagen?|stunden?|tagen?|wochen?)\b",
    re.IGNORECASE,
)
_NUMBERS = {"a": 1, "an": 1, "one": 1, "einer": 1, "einem": 1, "two": 2, "zwei": 2, "three": 3, "drei": 3}
_TODAY = re.compile(r"\b(?:today|tonight|this (?:morning|afternoon|evening)|heute)\b", re.IGNORECASE)
_TOMORROW = re.compile(r"\b(?:tomorrow|morgen)\b", re.IGNORECASE)
_WEEKDAY = re.compile(r"\b(?:by|on|until|before)\s+(mon|tues|wednes|thurs|fri|satur|sun)day\b", re.IGNORECASE)
_WEEKDAYS = ("mon", "tues", "wednes", "thurs", "fri", "satur", "sun")


def promise_due(text: str, said_at: datetime) -> datetime | None:
    """When what was promised in `text`, said at `said_at`, is due; None where nothing with a time was promised.

    A day is promised to its end. Working days count as calendar days and a weekend.
    """
    if not _WILL.search(text):
        return None
    if match := _WITHIN.search(text):
        number = int(match[1]) if match[1].isdigit() else _NUMBERS[match[1].lower()]
        unit = match[2].lower()
        if unit.startswith(("hour", "stunde")):
            return said_at + timedelta(hours=number)
        days = number * (7 if unit.startswith(("week", "woche")) else 1)
        return said_at + timedelta(days=days + (2 if unit.startswith(("working", "business", "werk", "arbeit")) else 0))
    if _TOMORROW.search(text):
        return _end_of_day(said_at + timedelta(days=1))
    if match := _WEEKDAY.search(text):
        ahead = (_WEEKDAYS.index(match[1].lower()) - said_at.weekday()) % 7
        return _end_of_day(said_at + timedelta(days=ahead))
    return _end_of_day(said_at) if _TODAY.search(text) else None


def _end_of_day(moment: datetime) -> datetime:
    return moment.replace(hour=23, minute=59, second=59, microsecond=0)
