"""When something may be suggested: one at a time, not again too soon, not too many."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.suggestions.enums import SuggestionState
from apps.suggestions.suggestion_policy import HoldReason, PastSuggestion, SuggestionLimits, hold_reason

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
USUAL = SuggestionLimits()


def past_suggestion(
    key: str = "k", state: SuggestionState = SuggestionState.OPEN, *, made: float, handled: float | None = None
) -> PastSuggestion:
    """`made`, `handled`: minutes ago."""
    at = NOW - timedelta(minutes=made)
    answered = None if handled is None else NOW - timedelta(minutes=handled)
    return PastSuggestion(key, state, at, at + timedelta(hours=48), answered)


def test_what_was_never_suggested_may_be() -> None:
    assert hold_reason("k", [], USUAL, now=NOW) is None


def test_open_one_is_not_suggested_twice() -> None:
    assert hold_reason("k", [past_suggestion(made=500)], USUAL, now=NOW) is HoldReason.OPEN


@pytest.mark.parametrize(("minutes", "held"), [(119.9, HoldReason.COOLDOWN), (120, None)])
def test_answered_one_rests_for_its_cooldown(minutes: float, held: HoldReason | None) -> None:
    rows = [past_suggestion(state=SuggestionState.DISMISSED, made=600, handled=minutes)]
    assert hold_reason("k", rows, USUAL, now=NOW) == held


@pytest.mark.parametrize(("minutes", "held"), [(179.9, HoldReason.COOLDOWN), (180, None)])
def test_same_one_is_not_made_again_within_the_window(minutes: float, held: HoldReason | None) -> None:
    rows = [past_suggestion(state=SuggestionState.ACCEPTED, made=minutes, handled=minutes)]
    assert hold_reason("k", rows, USUAL, now=NOW) == held


def test_muted_one_never_comes_back() -> None:
    rows = [past_suggestion(state=SuggestionState.MUTED, made=500_000, handled=500_000)]
    assert hold_reason("k", rows, USUAL, now=NOW) is HoldReason.MUTED


def test_sixth_that_waits_is_one_too_many() -> None:
    rows = [past_suggestion(f"other{number}", made=100) for number in range(5)]
    assert hold_reason("k", rows, USUAL, now=NOW) == HoldReason.FULL
    assert hold_reason("k", rows[1:], USUAL, now=NOW) is None


def test_seventh_within_an_hour_is_one_too_many() -> None:
    rows = [past_suggestion(f"other{number}", SuggestionState.DISMISSED, made=59, handled=1) for number in range(6)]
    assert hold_reason("k", rows, USUAL, now=NOW) == HoldReason.HOURLY
    assert hold_reason("k", rows[1:], USUAL, now=NOW) is None


def test_hour_slides() -> None:
    rows = [past_suggestion(f"other{number}", SuggestionState.DISMISSED, made=60, handled=1) for number in range(6)]
    assert hold_reason("k", rows, USUAL, now=NOW) is None


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(1, 90)), max_size=80))
def test_however_often_somebody_looks_limits_hold(looks: list[tuple[str, int]]) -> None:
    """With every other suggestion dismissed at once, the hourly limit and the limit of open ones hold."""
    made: list[PastSuggestion] = []
    moment = NOW
    for key, minutes in looks:
        moment += timedelta(minutes=minutes)
        if hold_reason(key, made, USUAL, now=moment) is None:
            quick = len(made) % 2 == 0
            state = SuggestionState.DISMISSED if quick else SuggestionState.OPEN
            made.append(PastSuggestion(key, state, moment, moment + timedelta(hours=48), moment if quick else None))
    for one in made:
        hour = [each for each in made if one.created_at - timedelta(hours=1) < each.created_at <= one.created_at]
        waiting = [each for each in made if each.created_at <= one.created_at and each.is_open(one.created_at)]
        same = [each for each in made if each.key == one.key and each.created_at < one.created_at]
        assert len(hour) <= USUAL.most_an_hour
        assert len(waiting) <= USUAL.most_open
        assert all(each.created_at + USUAL.dedupe <= one.created_at for each in same)
