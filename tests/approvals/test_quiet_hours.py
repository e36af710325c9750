"""Quiet hours: over midnight, by the day on which they begin, and in the company's time zone."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.approvals.cards.quiet_hours import QuietHours

LONDON = ZoneInfo("Europe/London")
NIGHT = QuietHours(time(22), time(7))
FRIDAY_NIGHT = QuietHours(time(22), time(7), frozenset({4}))
LUNCH = QuietHours(time(12), time(13, 30))
ALL_OF_SUNDAY = QuietHours(time(0), time(0), frozenset({6}))


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=LONDON)


@pytest.mark.parametrize(
    ("hours", "moment", "end"),
    [
        (NIGHT, "2026-06-10 21:59", None),
        (NIGHT, "2026-06-10 22:00", "2026-06-11 07:00"),
        (NIGHT, "2026-06-11 06:59", "2026-06-11 07:00"),
        (NIGHT, "2026-06-11 07:00", None),
        (LUNCH, "2026-06-10 12:30", "2026-06-10 13:30"),
        (LUNCH, "2026-06-10 13:30", None),
        # A Friday.
        (FRIDAY_NIGHT, "2026-06-12 23:00", "2026-06-13 07:00"),
        (FRIDAY_NIGHT, "2026-06-13 06:00", "2026-06-13 07:00"),
        (FRIDAY_NIGHT, "2026-06-13 23:00", None),
        (FRIDAY_NIGHT, "2026-06-12 06:00", None),
        (ALL_OF_SUNDAY, "2026-06-14 00:00", "2026-06-15 00:00"),
        (ALL_OF_SUNDAY, "2026-06-14 23:59", "2026-06-15 00:00"),
        (ALL_OF_SUNDAY, "2026-06-15 00:00", None),
        # The clocks go back at 02:00 in the night of 25 October.
        (NIGHT, "2026-10-25 01:30", "2026-10-25 07:00"),
    ],
)
def test_end(hours: QuietHours, moment: str, end: str | None) -> None:
    assert hours.end_at(at(moment), LONDON) == (at(end) if end else None)


def test_times_are_those_of_the_zone() -> None:
    moment = datetime.fromisoformat("2026-06-10T21:30:00+00:00")
    assert NIGHT.end_at(moment, LONDON) == at("2026-06-11 07:00")
    assert NIGHT.end_at(moment, ZoneInfo("UTC")) is None


times = st.times().map(lambda moment: moment.replace(second=0, microsecond=0))
quiet_hours = st.builds(QuietHours, times, times, st.frozensets(st.integers(0, 6), min_size=1))


@given(quiet_hours)
def test_what_is_stored_is_read_again(hours: QuietHours) -> None:
    assert QuietHours.from_json(hours.as_json()) == hours


@given(quiet_hours, st.integers(0, 365 * 24 * 60))
def test_end_is_later_and_within_a_day(hours: QuietHours, minutes: int) -> None:
    moment = at("2026-01-01 00:00") + timedelta(minutes=minutes)
    end = hours.end_at(moment, LONDON)
    if end is not None:
        assert end > moment
        assert end - moment <= timedelta(hours=25)
