"""What follows a failed attempt: each step only when the one before is used up, and always an end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.work.cascade import MAX_DEPTH, Step, is_different, next_step
from llm.calls import PlannedCall

A, B = PlannedCall("act", {"x": 1}), PlannedCall("act", {"x": 2})


@pytest.mark.parametrize(
    ("attempts", "exhausted", "on_stuck", "helps", "depth", "step"),
    [
        (1, False, "consult_planner", True, 0, Step.RETRY),
        (2, False, "consult_planner", True, 0, Step.RETRY),
        (3, False, "consult_planner", True, 0, Step.CONSULT),
        (4, False, "consult_planner", True, 0, Step.CONSULT),
        (3, False, "consult_planner", False, 0, Step.RETRY),
        (3, False, "report", True, 0, Step.RETRY),
        (5, True, "consult_planner", True, 0, Step.REPLAN),
        (5, True, "consult_planner", True, 1, Step.REPLAN),
        (5, True, "consult_planner", True, 2, Step.ESCALATE),
        (5, True, "consult_planner", False, 0, Step.ESCALATE),
        (5, True, "report", True, 0, Step.ESCALATE),
        (1, True, "consult_planner", True, 0, Step.REPLAN),
    ],
)
def test_next_step_climbs_one_rung(
    attempts: int, exhausted: bool, on_stuck: str, helps: bool, depth: int, step: Step
) -> None:
    found = next_step(attempts=attempts, exhausted=exhausted, on_stuck=on_stuck, planner_may_help=helps, depth=depth)
    assert found is step


@given(st.integers(0, 9), st.text(), st.booleans(), st.integers(0, 9))
def test_next_step_of_what_is_used_up_never_goes_on(attempts: int, on_stuck: str, helps: bool, depth: int) -> None:
    found = next_step(attempts=attempts, exhausted=True, on_stuck=on_stuck, planner_may_help=helps, depth=depth)
    assert found in (Step.REPLAN, Step.ESCALATE)


@given(st.integers(MAX_DEPTH, 9), st.booleans())
def test_next_step_at_full_depth_is_a_person(depth: int, helps: bool) -> None:
    found = next_step(attempts=5, exhausted=True, on_stuck="consult_planner", planner_may_help=helps, depth=depth)
    assert found is Step.ESCALATE


@pytest.mark.parametrize(
    ("calls", "tried", "different"),
    [
        ([A], [], True),
        ([A], [[B]], True),
        ([A, B], [[B, A]], True),
        ([A], [[A, B]], True),
        ([A], [[A]], False),
        ([A, B], [[B], [A, B]], False),
        ([], [], False),
    ],
)
def test_strategy_is_the_calls_in_their_order(
    calls: list[PlannedCall], tried: list[list[PlannedCall]], different: bool
) -> None:
    assert is_different(calls, tried) is different
