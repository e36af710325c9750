"""Receipts in words: endings, phases, calls and costs, also of old and broken receipts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.autonomy.enums import SessionStatus, TriggerKind
from apps.console.pages.automations import presenter
from apps.console.templatetags.runs import exact_usd
from apps.guard.enums import Intent, TerminalReason

AT = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)


def phases(*names: str, open_last: bool = False) -> list[dict[str, Any]]:
    rows = [
        {
            "to_phase": name,
            "timestamp": (AT + timedelta(seconds=n)).isoformat(),
            "left_at": AT + timedelta(seconds=n + 1),
        }
        for n, name in enumerate(names)
    ]
    if open_last:
        rows[-1]["left_at"] = None
    return rows


@pytest.mark.parametrize("reason", TerminalReason.values)
def test_ending_every_reason_has_a_sentence(reason: str) -> None:
    assert presenter.ending({"terminal_reason": reason}).endswith(".")


@pytest.mark.parametrize("status", SessionStatus.values)
def test_ending_every_status_has_a_sentence(status: str) -> None:
    assert presenter.ending({"status": status, "terminal_reason": ""})


def test_ending_of_one_that_was_told_to_stop_says_when() -> None:
    assert presenter.ending({"status": "running", "halt_state": "halt_requested"}) == "Stopping before the next call."


@pytest.mark.parametrize("kind", TriggerKind.values)
def test_began_every_trigger_has_words(kind: str) -> None:
    assert "unknown" not in presenter.began({"trigger_kind": kind})


@pytest.mark.parametrize("intent", Intent.values)
def test_calls_every_intent_has_words(intent: str) -> None:
    (line,) = presenter.calls({"tool_calls": [{"intent": intent, "tool": "x", "outcome": "executed"}]})
    assert line.mark == "ok"
    assert line.outcome == "done"
    assert "_" not in line.lead


def test_calls_refused_one_is_marked_and_says_why() -> None:
    (line,) = presenter.calls(
        {"tool_calls": [{"intent": "run_skill", "outcome": "refused", "error_code": "tool_not_granted"}]}
    )
    assert line.mark == "bad"
    assert line.outcome == "not allowed: tool not granted"


def test_steps_are_five_whatever_was_reached() -> None:
    assert [step.state for step in presenter.steps({})] == [""] * 5


def test_steps_of_one_that_ended_in_the_middle_say_where() -> None:
    found = presenter.steps({"phase_transitions": phases("intake", "analysis", open_last=True), "status": "halted"})
    assert [step.state for step in found] == ["done", "bad", "", "", ""]


def test_steps_of_one_under_way_say_where_it_is() -> None:
    found = presenter.steps({"phase_transitions": phases("intake", "analysis", open_last=True), "status": "running"})
    assert [step.state for step in found] == ["done", "now", "", "", ""]


def test_steps_say_how_long_each_took() -> None:
    assert presenter.steps({"phase_transitions": phases("intake")})[0].seconds == 1.0


@pytest.mark.parametrize(
    ("spent", "reserved", "cap", "widths", "near"),
    [
        ("0.1", "0.1", "0.5", (20.0, 20.0), False),
        ("0.4", "0", "0.5", (80.0, 0.0), True),
        ("0.4", "0.3", "0.5", (80.0, 20.0), True),
        ("0.7", "0.3", "0.5", (100.0, 0.0), True),
        ("0", "0", "0", (0.0, 0.0), True),
        ("0.1", "0", None, (0.0, 0.0), False),
        ("NaN", "sNaN", "Infinity", (0.0, 0.0), True),
        ("nonsense", None, "0.5", (0.0, 0.0), False),
    ],
)
def test_bar_shows_money_within_its_frame(
    spent: str, reserved: str | None, cap: str | None, widths: tuple[float, float], near: bool
) -> None:
    bar = presenter.bar({"cost_total_usd": spent, "cost_reserved_usd": reserved, "max_cost_usd": cap})
    assert (bar.spent_width, bar.reserved_width, bar.is_near) == (*widths, near)


def test_bar_zero_is_a_cap() -> None:
    assert presenter.bar({"max_cost_usd": "0"}).left == 0


def test_used_none_is_no_limit_and_zero_is_one() -> None:
    found = presenter.used({"used": {"calls": 3}, "limits": {"calls": 0}})
    assert [(one.used, one.most) for one in found[:2]] == [(3, 0), (0, None)]


_JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)
_KEYS = ("status", "terminal_reason", "tool_calls", "phase_transitions", "used", "limits", "cost_total_usd", "ended_at")


@given(st.dictionaries(st.sampled_from(_KEYS), _JUNK))
def test_broken_receipt_is_told_without_a_fault(receipt: dict[str, Any]) -> None:
    told = (presenter.ending(receipt), presenter.steps(receipt), presenter.calls(receipt), presenter.bar(receipt))
    assert len((*told, presenter.used(receipt), presenter.began(receipt))) == 6


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        ("0", "$0.00"),
        ("0.5", "$0.50"),
        ("12.345", "$12.345"),
        ("0.000042", "$0.000042"),
        ("0.010000000", "$0.01"),
        ("1234.5", "$1,234.50"),
        ("0.000000001", "$0.000000001"),
    ],
)
def test_amount_keeps_its_digits(amount: str, words: str) -> None:
    assert exact_usd(Decimal(amount)) == words
