"""Interaction modes: risk first, and one function that decides (spec 0.5.7 and 5.1.0)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.work.interaction import (
    DEFAULT_MODES,
    HIGH_INITIATIVE_MIN,
    InteractionHints,
    mode_for,
    resolve_interaction_mode,
)
from llm.enums import InteractionMode as Mode
from llm.enums import InteractionRegister as Register

MAYBE = st.none() | st.sampled_from(list(Mode))
REGISTERS = st.sampled_from(list(Register))


@given(MAYBE, MAYBE, MAYBE, st.floats(0, 1), REGISTERS)
def test_risk_overrides_every_wish(
    proxy: Mode | None, planner: Mode | None, item: Mode | None, initiative: float, register: Register
) -> None:
    mode = resolve_interaction_mode(proxy, planner, item, True, initiative, register)
    assert mode is Mode.CONFIRM_ONLY_WHEN_REQUIRED


@given(MAYBE, MAYBE, MAYBE, st.floats(0, 1), REGISTERS)
def test_first_wish_in_the_order_of_precedence_wins(
    proxy: Mode | None, planner: Mode | None, item: Mode | None, initiative: float, register: Register
) -> None:
    wishes = [wish for wish in (planner, item, proxy) if wish]
    mode = resolve_interaction_mode(proxy, planner, item, False, initiative, register)
    assert not wishes or mode is wishes[0]


@pytest.mark.parametrize(
    ("initiative", "register", "mode"),
    [
        (HIGH_INITIATIVE_MIN, Register.EXECUTION, Mode.ACT_AND_REPORT),
        (HIGH_INITIATIVE_MIN, Register.EXPLORATION, Mode.DEFAULT_AND_OFFER),
        (1.0, Register.REVIEW, Mode.CONFIRM_ONLY_WHEN_REQUIRED),
        (1.0, Register.STATUS, Mode.DEFAULT_AND_OFFER),
        (0.0, Register.EXECUTION, Mode.ACT_AND_REPORT),
    ],
)
def test_without_a_wish_initiative_and_register_decide(initiative: float, register: Register, mode: Mode) -> None:
    assert resolve_interaction_mode(None, None, None, False, initiative, register) is mode


def test_initiative_just_below_the_line_leaves_the_usual_mode() -> None:
    usual = {Register.EXECUTION: Mode.CONFIRM_ONLY_WHEN_REQUIRED}
    mode = resolve_interaction_mode(
        None, None, None, False, 0.64, Register.EXECUTION, high_initiative_min=0.65, default_mode_by_register=usual
    )
    assert mode is Mode.CONFIRM_ONLY_WHEN_REQUIRED


def test_register_without_a_usual_mode_offers() -> None:
    mode = resolve_interaction_mode(None, None, None, False, 0.0, Register.REVIEW, default_mode_by_register={})
    assert mode is Mode.DEFAULT_AND_OFFER


def test_every_register_has_a_usual_mode() -> None:
    assert set(DEFAULT_MODES) == set(Register)


def test_wish_of_a_turn_is_resolved() -> None:
    assert mode_for(InteractionHints(planner_override=Mode.ACT_AND_REPORT), confirm=False) is Mode.ACT_AND_REPORT
