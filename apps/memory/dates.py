"""Find dates in a text as ranges of time. Pure.

A range is half-open and in UTC: a day, a month or a year. Relative dates (`yesterday`, `last week`) are counted from
the day that the caller gives. What is no date of the calendar (`2026-02-30`) is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
_MONTH += r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
_DAY, _YEAR = r"(?P<day>\d{1,2})(?:st|nd|rd|th|\.)?", r"(?P<year>(?:19|20)\d\d)"
_PATTERNS = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)-(?P<day>\d\d)\b",
        rf"\b{_DAY} (?:of )?{_MONTH},? {_YEAR}\b",
        rf"\b{_MONTH} {_DAY},? {_YEAR}\b",
        rf"\b{_MONTH},? {_YEAR}\b",
        rf"\b(?:in|since|until|from|during|of|year) {_YEAR}\b",
    )
]
_RELATIVE = re.compile(r"\b(today|yesterday|(?:this|last) (?:week|month|year))\b", re.IGNORECASE)


class Range(NamedTuple):
    """`start` to `end` (not included), and the characters `at` to `to` that say so."""

    start: datetime
    end: datetime
    at: int
    to: int


def find_ranges(text: str, *, today: date) -> list[Range]:
    """The dates of a text, in its order; of two that overlap the one that says more."""
    taken: list[Range] = []
    for found in _absolute(text):
        if not any(found.at < other.to and other.at < found.to for other in taken):
            taken.append(found)
    for match in _RELATIVE.finditer(text):
        start, end = _RELATIVE_DAYS[" ".join(match[1].lower().split())](today)
        taken.append(Range(_moment(start), _moment(end), *match.span()))
    return sorted(taken, key=lambda found: found.at)


def find_days(text: str) -> list[date]:
    """The days that a text names in full; not months, years or relative dates."""
    return [found.start.date() for found in _absolute(text) if found.end - found.start == timedelta(days=1)]


def _absolute(text: str) -> Iterator[Range]:
    for pattern in _PATTERNS:
        for match in pattern.finditer(text):
            said = match.groupdict()
            month = said.get("month")
            number = 0 if month is None else int(month) if month.isdigit() else _MONTHS.index(month.lower()[:3]) + 1
            try:
                start, end = _period(int(said["year"]), number, int(said.get("day") or 0))
            except ValueError:
                continue
            yield Range(_moment(start), _moment(end), match.start(), match.end())


def _period(year: int, month: int, day: int) -> tuple[date, date]:
    """The day, month (`day` 0) or year (`month` 0). Raises `ValueError` for one that does not exist."""
    if day:
        start = date(year, month, day)
        return start, start + timedelta(days=1)
    if month:
        return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)
    return date(year, 1, 1), date(year + 1, 1, 1)


def _week(today: date, before: int) -> tuple[date, date]:
    start = today - timedelta(days=today.weekday(), weeks=before)
    return start, start + timedelta(weeks=1)


def _last_month(today: date) -> tuple[date, date]:
    last = today.replace(day=1) - timedelta(days=1)
    return _period(last.year, last.month, 0)


_RELATIVE_DAYS: dict[str, Callable[[date], tuple[date, date]]] = {
    "today": lambda today: (today, today + timedelta(days=1)),
    "yesterday": lambda today: (today - timedelta(days=1), today),
    "this week": lambda today: _week(today, 0),
    "last week": lambda today: _week(today, 1),
    "this month": lambda today: _period(today.year, today.month, 0),
    "last month": _last_month,
    "this year": lambda today: _period(today.year, 0, 0),
    "last year": lambda today: _period(today.year - 1, 0, 0),
}


def _moment(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
