"""The clocks of SLA policies, computed from moments: what starts, pauses and stops them, and which time counts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from apps.inbox.enums import SlaEvent, SlaOutcome, SlaTarget
from apps.inbox.sla_clocks import Clock, Moment, clocks, due_at, outcome_of
from apps.tenants.hours import DAYS, Schedule, is_open, open_spans

ALWAYS = Schedule({}, "UTC")
BERLIN = Schedule(dict.fromkeys(DAYS[:5], "09:00-12:00, 13:00-17:00"), "Europe/Berlin")
# Open around the hours in which clocks are put forward and back.
NIGHT = Schedule(dict.fromkeys(DAYS, "00:30-02:30, 02:45-05:00"), "Europe/Berlin")
MINUTES = {SlaTarget.FIRST_REPLY: 30, SlaTarget.NEXT_REPLY: 60, SlaTarget.RESOLUTION: 480}
START = datetime(2026, 11, 23, 10, tzinfo=UTC)
E = SlaEvent

schedules = st.sampled_from([ALWAYS, BERLIN, NIGHT, Schedule({}, "Europe/Berlin", ["2026-03-30", "2026-10-26"])])
# Days around both changes of the clocks in 2026.
starts = st.one_of(
    st.datetimes(datetime(2026, 3, 26), datetime(2026, 3, 31)),  # noqa: DTZ001 (gets its zone below)
    st.datetimes(datetime(2026, 10, 22), datetime(2026, 10, 27)),  # noqa: DTZ001 (as above)
).map(lambda moment: moment.replace(second=0, microsecond=0, tzinfo=UTC))


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def run(
    *events: tuple[float, SlaEvent], schedule: Schedule = ALWAYS, minutes: dict[SlaTarget, int] = MINUTES
) -> list[Clock]:
    return clocks([Moment(at(when), event) for when, event in events], minutes, schedule)


def of(found: list[Clock], target: SlaTarget) -> list[Clock]:
    return [clock for clock in found if clock.target == target]


def test_conversation_that_the_bot_has_alone_has_no_clock() -> None:
    assert run() == []
    assert run((0, E.SNOOZED), (5, E.REOPENED), (9, E.RESOLVED)) == []


@pytest.mark.parametrize("begins", [E.WANTED, E.TAKEN_OVER])
def test_first_reply_and_resolution_start_when_a_person_is_wanted_or_takes_over(begins: SlaEvent) -> None:
    first, resolution = run((0, begins))
    assert first == Clock(SlaTarget.FIRST_REPLY, at(0), due_at=at(30))
    assert resolution == Clock(SlaTarget.RESOLUTION, at(0), due_at=at(480))


def test_taking_over_does_not_start_the_clocks_again() -> None:
    assert [clock.started_at for clock in run((0, E.WANTED), (10, E.TAKEN_OVER), (12, E.WANTED))] == [at(0), at(0)]


def test_reply_stops_the_first_reply_and_the_next_message_starts_the_next() -> None:
    found = run((0, E.WANTED), (5, E.TAKEN_OVER), (10, E.REPLIED), (20, E.ASKED), (25, E.ASKED), (90, E.REPLIED))
    (first,), (following,) = of(found, SlaTarget.FIRST_REPLY), of(found, SlaTarget.NEXT_REPLY)
    assert first.ended_at == at(10)
    assert outcome_of(first, at(99)) == SlaOutcome.MET
    assert following.started_at == at(20)
    assert following.due_at == at(80)
    assert following.ended_at == at(90)
    assert outcome_of(following, at(99)) == SlaOutcome.MISSED


def test_message_before_the_first_reply_starts_no_second_clock() -> None:
    found = run((0, E.WANTED), (5, E.ASKED))
    assert of(found, SlaTarget.NEXT_REPLY) == []
    assert len(of(found, SlaTarget.FIRST_REPLY)) == 1


def test_clock_is_missed_from_the_moment_it_is_due() -> None:
    (first, _resolution) = run((0, E.WANTED))
    assert outcome_of(first, at(30) - timedelta(microseconds=1)) == SlaOutcome.RUNNING
    assert outcome_of(first, at(30)) == SlaOutcome.MISSED
    (in_time, _resolution) = run((0, E.TAKEN_OVER), (30, E.REPLIED))
    assert outcome_of(in_time, at(99)) == SlaOutcome.MET


def test_resolving_meets_the_resolution_and_cancels_the_reply() -> None:
    first, resolution = run((0, E.TAKEN_OVER), (20, E.RESOLVED))
    assert outcome_of(first, at(99)) == SlaOutcome.CANCELLED
    assert outcome_of(resolution, at(99)) == SlaOutcome.MET


def test_handing_back_cancels_all_and_another_request_starts_anew() -> None:
    found = run((0, E.TAKEN_OVER), (5, E.REPLIED), (6, E.ASKED), (9, E.HANDED_BACK), (50, E.WANTED))
    assert [outcome_of(clock, at(60)) for clock in found if clock.ended_at == at(9)] == [SlaOutcome.CANCELLED] * 2
    assert [clock.target for clock in found if clock.started_at == at(50)] == [
        SlaTarget.FIRST_REPLY,
        SlaTarget.RESOLUTION,
    ]


def test_what_was_overdue_when_it_was_cancelled_is_missed() -> None:
    first, _resolution = run((0, E.TAKEN_OVER), (31, E.HANDED_BACK))
    assert outcome_of(first, at(99)) == SlaOutcome.MISSED


def test_visitor_who_writes_after_the_resolution_starts_the_next_reply_and_a_resolution() -> None:
    found = run((0, E.TAKEN_OVER), (5, E.REPLIED), (9, E.RESOLVED), (500, E.ASKED))
    later = [clock for clock in found if clock.started_at == at(500)]
    assert [(clock.target, clock.ended_at) for clock in later] == [
        (SlaTarget.NEXT_REPLY, None),
        (SlaTarget.RESOLUTION, None),
    ]


def test_teammate_who_reopens_starts_the_resolution_alone() -> None:
    found = run((0, E.TAKEN_OVER), (5, E.REPLIED), (9, E.RESOLVED), (500, E.REOPENED))
    assert [clock.target for clock in found if clock.started_at == at(500)] == [SlaTarget.RESOLUTION]


def test_conversation_that_nobody_took_over_leaves_the_team_when_it_is_resolved() -> None:
    found = run((0, E.WANTED), (9, E.RESOLVED), (20, E.REOPENED))
    assert all(clock.ended_at for clock in found)


def test_person_who_had_the_conversation_before_any_policy_is_asked_for_the_next_reply() -> None:
    assert [clock.target for clock in run((0, E.ASKED))] == [SlaTarget.NEXT_REPLY, SlaTarget.RESOLUTION]


def test_snooze_pauses_all_clocks() -> None:
    snooze = Moment(at(10), E.SNOOZED, until=at(110))
    first, resolution = clocks([Moment(at(0), E.WANTED), snooze], MINUTES, ALWAYS)
    assert first.due_at == at(130)
    assert resolution.due_at == at(580)
    early = clocks([Moment(at(0), E.WANTED), snooze, Moment(at(60), E.REOPENED)], MINUTES, ALWAYS)
    assert early[0].due_at == at(80)


def test_snooze_without_an_end_has_no_due_time_until_the_visitor_writes() -> None:
    moments = [Moment(at(0), E.WANTED), Moment(at(10), E.SNOOZED)]
    assert [clock.due_at for clock in clocks(moments, MINUTES, ALWAYS)] == [None, None]
    assert clocks([*moments, Moment(at(50), E.ASKED)], MINUTES, ALWAYS)[0].due_at == at(70)


def test_closed_hours_do_not_count() -> None:
    friday = datetime(2026, 11, 27, 15, 50, tzinfo=UTC)  # 16:50 in Berlin
    assert due_at(friday, 30, BERLIN) == datetime(2026, 11, 30, 8, 20, tzinfo=UTC)
    assert due_at(friday, 30, ALWAYS) == friday + timedelta(minutes=30)
    assert due_at(friday, 30, Schedule(BERLIN.hours, BERLIN.zone, ["2026-11-30"])) == datetime(
        2026, 12, 1, 8, 20, tzinfo=UTC
    )


def test_hour_that_the_clocks_skip_or_repeat_counts_as_it_passes() -> None:
    night = Schedule(dict.fromkeys(DAYS, "00:00-06:00"), "Europe/Berlin")
    spring, autumn = datetime(2026, 3, 28, 23, tzinfo=UTC), datetime(2026, 10, 24, 22, tzinfo=UTC)
    assert due_at(spring, 5 * 60, night) == datetime(2026, 3, 29, 4, tzinfo=UTC)
    assert due_at(spring, 6 * 60, night) == datetime(2026, 3, 29, 23, tzinfo=UTC)
    assert due_at(autumn, 7 * 60, night) == datetime(2026, 10, 25, 5, tzinfo=UTC)


def test_team_that_is_never_there_is_never_due() -> None:
    days = [(START.date() + timedelta(days=ahead)).isoformat() for ahead in range(-1, 500)]
    assert due_at(START, 1, Schedule({}, "UTC", days)) is None


def _open_minutes(schedule: Schedule, begins: datetime, ends: datetime) -> int:
    """Counted minute by minute."""
    minutes = int((ends - begins).total_seconds() // 60)
    open_at = (begins + timedelta(minutes=minute) for minute in range(minutes))
    return sum(
        is_open(schedule.hours, zone=schedule.zone, moment=moment, holidays=schedule.holidays) for moment in open_at
    )


@given(schedule=schedules, since=starts)
@example(
    schedule=Schedule(dict.fromkeys(DAYS, "00:30-02:30, 02:45-05:00"), "Europe/Berlin"),
    since=datetime(2026, 3, 27, 22, 31, tzinfo=UTC),
)
def test_open_spans_are_those_in_which_it_is_open(schedule: Schedule, since: datetime) -> None:
    # Four local days: three can end before two times 24 hours do, where the clocks go forward.
    spans = list(open_spans(schedule, since=since, days=4))
    assert all(opens < closes for opens, closes in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    end = since + timedelta(days=2)
    counted = sum((min(closes, end) - opens for opens, closes in spans if opens < end), timedelta())
    assert counted == timedelta(minutes=_open_minutes(schedule, since, end))


@given(schedule=schedules, since=starts, minutes=st.integers(1, 900))
def test_due_time_counts_open_minutes_alone(schedule: Schedule, since: datetime, minutes: int) -> None:
    due = due_at(since, minutes, schedule)
    assert due is not None
    assert _open_minutes(schedule, since, due) == minutes


@given(
    schedule=schedules, since=starts, minutes=st.integers(1, 900), later=st.integers(0, 900), more=st.integers(0, 90)
)
def test_who_starts_later_or_has_more_time_is_due_later(
    schedule: Schedule, since: datetime, minutes: int, later: int, more: int
) -> None:
    due = due_at(since, minutes, schedule)
    after = due_at(since + timedelta(minutes=later), minutes + more, schedule)
    assert due is not None
    assert after is not None
    assert due <= after
    assert since < due


histories = st.lists(st.tuples(st.integers(0, 2000), st.sampled_from(list(SlaEvent))), max_size=25)


@given(events=histories, schedule=schedules)
def test_any_history_has_at_most_one_running_clock_of_a_kind(
    events: list[tuple[int, SlaEvent]], schedule: Schedule
) -> None:
    found = run(*events, schedule=schedule)
    running = [clock.target for clock in found if clock.ended_at is None]
    assert len(running) == len(set(running))
    assert not {SlaTarget.FIRST_REPLY, SlaTarget.NEXT_REPLY} <= set(running)
    assert all(clock.ended_at is None or clock.started_at <= clock.ended_at for clock in found)
    assert len({(clock.target, clock.started_at, clock.ended_at) for clock in found}) == len(found)


@given(events=histories)
def test_reply_at_the_end_leaves_no_reply_due(events: list[tuple[int, SlaEvent]]) -> None:
    found = run(*events, (2001, E.REPLIED))
    assert {clock.target for clock in found if clock.ended_at is None} <= {SlaTarget.RESOLUTION}


@given(events=histories)
def test_what_has_ended_stays_the_same_whatever_follows(events: list[tuple[int, SlaEvent]]) -> None:
    def ended(*more: tuple[int, SlaEvent]) -> set[tuple[SlaTarget, datetime, datetime, SlaOutcome]]:
        found = run(*events, *more)
        return {(one.target, one.started_at, one.ended_at, outcome_of(one, at(0))) for one in found if one.ended_at}

    assert ended() <= ended((2001, E.ASKED), (2002, E.RESOLVED))
