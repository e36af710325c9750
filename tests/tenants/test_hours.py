"""When is somebody there, in the time of the place?"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.tenants.hours import DAYS, Schedule, hours_problem, is_open, next_opening, team_status

LONDON, BERLIN, KATHMANDU = "Europe/London", "Europe/Berlin", "Asia/Kathmandu"
FIRST = datetime(2026, 1, 1)  # noqa: DTZ001 (hypothesis gives it its zone)
WORKING = dict.fromkeys(DAYS[:5], "08:00-12:00, 13:00-18:00")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "hours",
    [
        [],
        "09-17",
        None,
        {"monday": "08:00-18:00"},
        {"mon": "8-18"},
        {"mon": "18:00-08:00"},
        {"mon": "08:00-08:00"},
        {"mon": "08:00-25:00"},
        {"mon": "08:60-09:00"},
        {"mon": "08:00-12:00, 11:00-18:00"},
        {"mon": ["08:00-18:00"]},
        {"mon": ""},
        {"mon": "08:00-18:00,"},
        {"mon": "08:00-09:00, 10:00-11:00, 12:00-13:00, 14:00-15:00, 16:00-17:00"},
        {1: "08:00-18:00"},
        {"mon": "08:00-18:00; DROP TABLE"},
    ],
)
def test_hours_that_nobody_can_keep_are_refused(hours: Any) -> None:
    assert hours_problem(hours)


@pytest.mark.parametrize("hours", [{}, WORKING, {"sun": "00:00-24:00"}, {"sat": " 09:00 - 16:00 "}])
def test_hours_that_can_be_kept_are_taken(hours: Any) -> None:
    assert hours_problem(hours) == ""


@pytest.mark.parametrize(
    ("moment", "zone", "expected"),
    [
        ("2026-11-23T08:00", LONDON, True),
        ("2026-11-23T07:59", LONDON, False),
        ("2026-11-23T12:00", LONDON, False),
        ("2026-11-23T17:59", LONDON, True),
        ("2026-11-23T18:00", LONDON, False),
        ("2026-11-22T10:00", LONDON, False),
        ("2026-07-06T07:00", LONDON, True),
        ("2026-11-23T07:00", BERLIN, True),
        ("2026-11-23T02:15", KATHMANDU, True),
        ("2026-11-22T23:00", KATHMANDU, False),
    ],
)
def test_hours_are_those_on_the_wall_of_the_place(moment: str, zone: str, expected: bool) -> None:
    assert is_open(WORKING, zone=zone, moment=at(moment)) == expected


def test_no_hours_at_all_means_that_somebody_is_always_there() -> None:
    assert is_open({}, zone=LONDON, moment=at("2026-11-22T03:00"))


@pytest.mark.parametrize(
    ("moment", "opens"),
    [
        ("2026-11-21T20:00", "2026-11-23T08:00"),
        ("2026-11-23T12:30", "2026-11-23T13:00"),
        ("2026-11-27T18:00", "2026-11-30T08:00"),
        ("2026-11-23T00:00", "2026-11-23T08:00"),
    ],
)
def test_next_opening_is_the_first_one_after_now(moment: str, opens: str) -> None:
    assert next_opening(WORKING, zone=LONDON, moment=at(moment)) == at(opens)


def test_once_a_week_is_found_a_week_ahead() -> None:
    assert next_opening({"mon": "08:00-09:00"}, zone=LONDON, moment=at("2026-11-23T09:30")) == at("2026-11-30T08:00")


@given(moment=st.datetimes(timezones=st.just(UTC), min_value=FIRST, max_value=FIRST.replace(year=2027)))
def test_somebody_is_there_or_comes_back(moment: datetime) -> None:
    assert is_open(WORKING, zone=BERLIN, moment=moment) or next_opening(WORKING, zone=BERLIN, moment=moment)


@pytest.mark.parametrize("zone", ["", "Mars/Base"])
def test_zone_that_is_not_known_here_is_read_as_utc(zone: str) -> None:
    """A turn that hands on must not fail for it."""
    assert next_opening(WORKING, zone=zone, moment=at("2026-03-02T06:00")) == at("2026-03-02T08:00")
    assert is_open({}, zone=zone, moment=at("2026-03-02T06:00"))


def test_closed_team_says_when_it_is_back() -> None:
    friday, monday = at("2026-01-09T19:30:00"), "2026-01-12T08:00:00+01:00"
    assert team_status(Schedule(WORKING, BERLIN), friday) == {"open": False, "opens_at": monday}


def test_team_that_does_not_open_within_a_month_is_closed_without_a_time() -> None:
    days = [f"2026-01-{day:02}" for day in range(5, 32)] + [f"2026-02-{day:02}" for day in range(1, 29)]
    told = team_status(Schedule({}, BERLIN, days), at("2026-01-06T09:00:00"))
    assert told == {"open": False, "opens_at": None}


def test_team_without_opening_hours_is_always_open() -> None:
    assert team_status(Schedule({}, BERLIN), at("2026-01-11T03:00:00")) == {"open": True, "opens_at": None}
