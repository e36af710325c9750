"""The administration's form refuses gates that would not work, beside their field."""

from __future__ import annotations

from typing import Any

import pytest

from apps.gates.forms import GateForm

FILLED = {
    "name": "fresh",
    "on": "every_user_message",
    "provider": "predicate",
    "type": "regex",
    "config": '{"pattern": "x"}',
    "order": 100,
    "on_block": "report",
    "seen": 0,
}
BROKEN: list[dict[str, Any]] = [
    {"config": "{"},
    {"config": "[1]"},
    {"config": '{"pattern": "("}'},
    {"config": '{"pattern": NaN}'},
    {"config": '{"patern": "x"}'},
    {"config": "[" * 9999},
    {"type": "numeric_range", "config": "", "auto_from": "9", "auto_to": "1"},
    {"type": "numeric_range", "config": "", "auto_from": "nan", "auto_to": "1"},
    {"type": "numeric_range", "config": "", "auto_from": "a", "auto_to": "1"},
    {"type": "numeric_range", "config": "", "auto_from": "1"},
    {"provider": "custom", "config": "", "check": "nobody"},
    {"on": "after_step"},
    {"on": "whenever"},
    {"order": "-1"},
]


def test_gate_that_works_is_accepted() -> None:
    form = GateForm(FILLED)
    assert form.is_valid()
    assert form.spec.config == {"pattern": "x"}


@pytest.mark.parametrize("fields", BROKEN)
def test_gate_that_would_not_work_is_refused_beside_the_field(fields: dict[str, Any]) -> None:
    form = GateForm({**FILLED, **fields})
    assert not form.is_valid()
    assert set(form.errors) <= set(form.fields)


def test_gate_of_a_library_that_is_missing_is_refused(settings: Any, tmp_path: Any) -> None:
    settings.GUARDRAILS_DIR = tmp_path
    wanted = {"provider": "guardrails_ai", "type": "custom_check", "check": "pii", "config": ""}
    form = GateForm({**FILLED, **wanted})
    assert not form.is_valid()
    assert "run make guardrails" in str(form.errors)
