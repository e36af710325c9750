"""What two versions say differently, as a person reads it."""

from __future__ import annotations

from typing import Any

import pytest

from apps.gates.differences import differences, lines_of
from apps.gates.schemas import GateSpec
from apps.gates.services.versions import content_of

CAP: dict[str, Any] = {
    "name": "cap",
    "on": "on_tool_call",
    "type": "numeric_range",
    "extract": "amount",
    "auto_approve": {"min": 0, "max": 50},
    "config": {"tools": ["refund"]},
}


def changed(**fields: Any) -> list[tuple[str, str, str]]:
    old, new = (content_of(GateSpec(**{**CAP, **each})) for each in ({}, fields))
    found = differences(old, new, old_order=100, new_order=100)
    return [(one.label, one.before, one.after) for one in found]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, []),
        ({"auto_approve": {"min": 0, "max": 75.5}}, [("Allowed", "0 to 50", "0 to 75.5")]),
        ({"require_approval": {"min": 50, "max": 250}}, [("Needs approval", "", "50 to 250")]),
        ({"block": {"outside": (0, 250)}}, [("Never outside", "", "0 to 250")]),
        ({"auto_approve": None}, [("Allowed", "0 to 50", "")]),
        ({"config": {"tools": ["refund", "pay"]}}, [("Setting: tools", "refund", "refund, pay")]),
        ({"config": {}}, [("Setting: tools", "refund", "")]),
        ({"provider": "script"}, [("Check", "A rule", "A skill script")]),
        ({"check_expect": {"equals": "ok"}}, [("Expected output", "", "equals: ok")]),
    ],
)
def test_difference_is_told_by_field(fields: dict[str, Any], expected: list[tuple[str, str, str]]) -> None:
    assert changed(**fields) == expected


def test_only_of_a_model_it_is_said_whether_it_binds() -> None:
    rule, model = (
        content_of(GateSpec(**{**CAP, "provider": who, "type": "custom_check"})) for who in ("predicate", "llm")
    )
    said = [
        [line.value for line in lines_of(each, order=1) if line.field == "promote_to_policy"] for each in (rule, model)
    ]
    assert said == [[], ["No"]]


def test_another_place_in_the_order_is_a_difference() -> None:
    content = content_of(GateSpec(**CAP))
    (found,) = differences(content, content, old_order=10, new_order=20)
    assert found.field == "order"
    assert found.before == "10"
    assert found.after == "20"


@pytest.mark.parametrize("content", [{}, {"on": 7, "config": "x"}, {"block": {"outside": None}, "config": {"a": {}}}])
def test_content_that_is_no_gate_can_still_be_read(content: dict[str, Any]) -> None:
    assert lines_of(content, order=1)
