"""Limits of research: tools, number, time, and states."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.work import research_rules as rules
from apps.work.enums import PlanningState as State

ALLOWED = {"web_search", "read_file", "memory_search"}


@given(st.sets(st.one_of(st.text(), st.sampled_from([*ALLOWED, "shell_exec", "act"]))))
def test_tools_are_never_more_than_the_list(asked_for: set[str]) -> None:
    assert rules.clamp_tools(asked_for) == asked_for & ALLOWED


@pytest.mark.parametrize(
    ("rounds", "in_flight", "room"), [(0, 0, 3), (0, 2, 1), (0, 3, 0), (0, 9, 0), (4, 0, 3), (5, 0, 0), (6, 0, 0)]
)
def test_room_for_questions(rounds: int, in_flight: int, room: int) -> None:
    assert rules.questions_left(rounds=rounds, in_flight=in_flight) == room


@given(st.text(), st.integers(1, 2000))
def test_answer_is_cut_to_its_length(text: str, tokens: int) -> None:
    assert rules.truncate_answer(text, tokens) == text[: tokens * 4]


@pytest.mark.parametrize("other", [("b", "f", 1), ("a", "g", 1), ("a", "f", 2)])
def test_key_tells_questions_apart(other: tuple[str, str, int]) -> None:
    assert rules.dedupe_key(*other) != rules.dedupe_key("a", "f", 1) == rules.dedupe_key("a", "f", 1)


@pytest.mark.parametrize("old", list(State))
@pytest.mark.parametrize("new", list(State))
def test_states_follow_the_specification(old: State, new: State) -> None:
    allowed = {
        (State.PLANNING, State.AWAITING_RESEARCH),
        (State.PLANNING, State.FINISHED),
        (State.AWAITING_RESEARCH, State.READY_TO_FINALIZE),
        (State.AWAITING_RESEARCH, State.EXPIRED),
        (State.READY_TO_FINALIZE, State.PLANNING),
        (State.EXPIRED, State.PLANNING),
    }
    assert rules.may_move(old, new) == ((old, new) in allowed)
