"""Evaluate a deployment's opening hours, by day of the week in its own time zone. Pure.

`{"mon": "08:00-12:00, 13:00-20:00", "sat": "09:00-16:00"}`: a missing day is closed; an empty value means always open.
Times are local, so daylight saving time does not shift them. Used when a visitor asks for a person; does not decide who
answers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from kernel.language import gettext
from kernel.timezones import get_timezone

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_SPAN = re.compile(r"([01]\d|2[0-3]):([0-5]\d)\s*[-\u2013]\s*(?:([01]\d|2[0-3]):([0-5]\d)|(24):(00))")
_MAX_SPANS, _LOOK_AHEAD_DAYS = 4, 31
_EXAMPLE = '{"mon": "08:00-18:00", "sat": "09:00-12:00"}'


@dataclass(frozen=True)
class Schedule:
    """Opening hours in their time zone; `holidays` are dates such as `2026-12-25` that are closed all day."""

    hours: Mapping[str, str]
    zone: str
    holidays: Collection[str] = ()


def hours_problem(hours: object) -> str:
    """What is wrong with these opening hours, as a sentence; empty if nothing is."""
    if not isinstance(hours, dict):
        return gettext("Enter opening hours by day, for example {example}.").format(example=_EXAMPLE)
    for day, spans in hours.items():
        if day not in DAYS:
            return gettext("Unknown day {day}. Use {listed}.").format(day=str(day)[:20], listed=", ".join(DAYS))
        if not isinstance(spans, str) or not _spans(spans):
            return gettext('{day} must be one or more times such as "09:00-12:00, 13:00-17:00".').format(day=day)
    return ""


def is_open(hours: Mapping[str, str], *, zone: str, moment: datetime, holidays: Collection[str] = ()) -> bool:
    if not hours and not holidays:
        return True
    local = moment.astimezone(get_timezone(zone))
    minute = local.hour * 60 + local.minute
    return any(start <= minute < end for start, end in _spans_on(hours, local.date(), holidays))


def next_opening(
    hours: Mapping[str, str], *, zone: str, moment: datetime, holidays: Collection[str] = ()
) -> datetime | None:
    """The next opening in local time; None if it is open now or does not open within a month."""
    if is_open(hours, zone=zone, moment=moment, holidays=holidays):
        return None
    local = moment.astimezone(get_timezone(zone))
    for ahead in range(_LOOK_AHEAD_DAYS):
        day = local.date() + timedelta(days=ahead)
        for start, _ in _spans_on(hours, day, holidays):
            opens = datetime.combine(day, time(start // 60, start % 60), tzinfo=local.tzinfo)
            if opens > local:
                return opens
    return None


def team_status(schedule: Schedule, moment: datetime) -> dict[str, object]:
    """What a visitor is told of the team: whether it answers now, and if not, when it is back as far as that is
    known."""
    opens = next_opening(schedule.hours, zone=schedule.zone, moment=moment, holidays=schedule.holidays)
    open_now = is_open(schedule.hours, zone=schedule.zone, moment=moment, holidays=schedule.holidays)
    return {"open": open_now, "opens_at": opens.isoformat() if opens else None}


def open_spans(schedule: Schedule, *, since: datetime, days: int) -> Iterator[tuple[datetime, datetime]]:
    """The spans of UTC in which it is open (`is_open`) from `since` on, in order, over so many days."""
    since = since.astimezone(UTC)
    if not schedule.hours and not schedule.holidays:
        yield since, since + timedelta(days=days)
        return
    zone = get_timezone(schedule.zone)
    first = since.astimezone(zone).date()
    for day in (first + timedelta(days=ahead) for ahead in range(days)):
        midnight, spans = datetime.combine(day, time(), UTC), _spans_on(schedule.hours, day, schedule.holidays)
        for begins, ends, offset in _offsets_on(day, zone) if spans else ():
            for start, end in spans:
                opens = max(since, begins, midnight + timedelta(minutes=start) - offset)
                closes = min(ends, midnight + timedelta(minutes=end) - offset)
                if opens < closes:
                    yield opens, closes


def _offsets_on(day: date, zone: tzinfo) -> list[tuple[datetime, datetime, timedelta]]:
    """The parts of a local day in UTC with the offset of each: two on a day on which daylight saving time begins or
    ends, else one."""
    begins, ends = (datetime.combine(day + timedelta(days=n), time(), zone).astimezone(UTC) for n in (0, 1))
    # On the day of a change a local time alone would be counted with the wrong offset for a part of the day.
    before, after = _offset(begins, zone), _offset(ends, zone)
    if before == after:
        return [(begins, ends, before)]
    # Offsets change at a full minute, which is looked for by halves.
    early, late = 0, int((ends - begins).total_seconds() // 60)
    while late - early > 1:
        middle = (early + late) // 2
        is_early = _offset(begins + timedelta(minutes=middle), zone) == before
        early, late = (middle, late) if is_early else (early, middle)
    change = begins + timedelta(minutes=late)
    return [(begins, change, before), (change, ends, after)]


def _offset(moment: datetime, zone: tzinfo) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta()


def _spans_on(hours: Mapping[str, str], day: date, holidays: Collection[str] = ()) -> list[tuple[int, int]]:
    if day.isoformat() in holidays:
        return []
    return _spans(hours.get(DAYS[day.weekday()], "")) if hours else [(0, 24 * 60)]


def _spans(text: str) -> list[tuple[int, int]]:
    """(start, end) in minutes of the day, in order; empty if the text is malformed, or if spans overlap or are
    reversed."""
    spans = []
    for part in text.split(",") if text else ():
        match = _SPAN.fullmatch(part.strip())
        if match is None:
            return []
        from_hour, from_minute, to_hour, to_minute = (int(group) for group in match.groups() if group is not None)
        spans.append((from_hour * 60 + from_minute, to_hour * 60 + to_minute))
    ends = [0, *(end for _, end in spans)]
    in_order = all(before <= start < end for before, (start, end) in zip(ends, spans, strict=False))
    return spans if in_order and len(spans) <= _MAX_SPANS else []
