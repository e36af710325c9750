"""A goal's template accepts typed values only, in linear time."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.work import goal_templates
from apps.work.goal_templates import TemplateValues
from kernel.errors import SilasError
from llm.calls import PlannedCall, call_block, parse_calls

TEMPLATE = (
    "Refund it.\n\n" + call_block(PlannedCall("refund", {"amount": "$amount", "order": "$order"})) + "\n\nThen stop."
)
REPAIR = "Fix: $failed_checks. Again: $failed_checks\n\n" + call_block(PlannedCall("repair", {"feed": "F-1"}))
VALUES: Any = st.one_of(st.text(max_size=30), st.integers(-1000, 1000), st.decimals(0, 999, places=2).map(float))


def fill(template: str, **args: Any) -> str | None:
    return goal_templates.fill(template, TemplateValues(args))


def test_values_stand_in_the_call() -> None:
    body = fill(TEMPLATE, amount=12.5, order="H-1")
    assert parse_calls(body or "") == (PlannedCall("refund", {"amount": 12.5, "order": "H-1"}),)


@pytest.mark.parametrize("args", [{}, {"amount": 1}, {"amount": 1, "order": "H-1", "to": "me"}])
def test_other_arguments_do_not_fit(args: dict[str, Any]) -> None:
    assert fill(TEMPLATE, **args) is None


@pytest.mark.parametrize("value", [[1], {"a": 1}, "```", "x~~~call", "a\u202eb", "\u2028"])
def test_value_that_is_not_one_plain_scalar_does_not_fit(value: Any) -> None:
    assert fill(TEMPLATE, amount=1, order=value) is None


def test_other_constant_does_not_fit() -> None:
    fixed = call_block(PlannedCall("refund", {"amount": "$amount", "method": "original"}))
    assert fill(fixed, amount=1, method="cash") is None


def test_value_that_looks_like_a_place_is_not_filled_again() -> None:
    body = fill(TEMPLATE, amount="$failed_checks", order="$amount")
    assert parse_calls(body or "") == (PlannedCall("refund", {"amount": "$failed_checks", "order": "$amount"}),)


@pytest.mark.parametrize(
    "told",
    ["one\ntwo", "one\rtwo", "one\u2028two", "```call", "~~~call", "`x`", "\x1b[1m", "a\u200bb", "x" * 4001],
)
def test_prose_that_is_not_one_plain_line_does_not_fit(told: str) -> None:
    assert goal_templates.fill(REPAIR, TemplateValues({"feed": "F-1"}, told)) is None


@pytest.mark.parametrize("told", ["", "ping (expected {'exit_code': 0}, got exit code 1)", "größer; kleiner"])
def test_values_are_read_back_from_what_they_filled(told: str) -> None:
    body = goal_templates.fill(REPAIR, TemplateValues({"feed": "F-1"}, told))
    assert body is not None
    found = goal_templates.values_in(REPAIR, body)
    assert found is not None
    assert found.failed_checks == told
    assert goal_templates.fill(REPAIR, found) == body


@given(st.text(max_size=200))
def test_whatever_failed_is_told_in_one_line_that_fits(text: str) -> None:
    assert goal_templates.fill(REPAIR, TemplateValues({"feed": "F-1"}, goal_templates.one_line(text))) is not None


@given(amount=VALUES, order=VALUES)
def test_any_values_that_fit_keep_the_call(amount: Any, order: Any) -> None:
    body = fill(TEMPLATE, amount=amount, order=order)
    if body is not None:
        assert parse_calls(body) == (PlannedCall("refund", {"amount": amount, "order": order}),)


@given(st.text(alphabet='Fix: \n`~cal{}$"', max_size=60), st.text(alphabet="`~cal\n {}", max_size=30))
def test_body_that_is_made_again_to_itself_has_the_template_s_call_alone(before: str, told: str) -> None:
    body = REPAIR.replace("Fix: ", before).replace("$failed_checks", told)
    found = goal_templates.values_in(REPAIR, body)
    made = goal_templates.fill(REPAIR, found) if found else None
    if made == body:
        assert parse_calls(body) == (PlannedCall("repair", {"feed": "F-1"}),)


@pytest.mark.parametrize(
    "template",
    ["no call", TEMPLATE + TEMPLATE, call_block(PlannedCall("refund", {"note": "for $order"})),
     call_block(PlannedCall("refund", {"amount": "$order"}))],
)  # fmt: skip
def test_template_call_of_bad_template_is_refused(template: str) -> None:
    with pytest.raises(SilasError, match="template"):
        goal_templates.template_call(template)


def _seconds(size: int) -> float:
    """Best of three readings of a body of about `size` characters that almost fits."""
    template = "$failed_checks a " * (size // 17) + TEMPLATE
    body = "a " * (size // 2) + call_block(PlannedCall("refund", {"amount": 1, "order": "H-1"})) + "\n\nThen stop"
    taken = []
    for _ in range(3):
        begun = perf_counter()
        found = goal_templates.values_in(template, body)
        assert found is None or goal_templates.fill(template, found) != body
        taken.append(perf_counter() - begun)
    return min(taken)


def test_reading_takes_time_that_grows_with_the_length() -> None:
    assert _seconds(40_000) < 8 * max(_seconds(10_000), 0.002)
