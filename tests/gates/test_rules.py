"""The predicate table, expectations, escalations and mutations, as the contract states them (silas 5.2, 5.4, 6)."""

import json
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from apps.gates import rules
from apps.gates.enums import EscalationKind, GateCode, GateLane
from apps.gates.schemas import EscalationSpec, Expectation, GateSpec
from apps.gates.services import check_gates
from kernel.canonical import sha256_hex
from tests.approvals import vectors


def gate(**fields) -> GateSpec:
    return GateSpec(**{"name": "g", "on": "on_tool_call", **fields})


REFUND = gate(
    type="numeric_range",
    extract="amount",
    auto_approve={"min": 0, "max": 50},
    require_approval={"min": 50, "max": 250},
    block={"outside": [0, 250]},
)


@pytest.mark.parametrize(
    ("value", "action"),
    [
        (0, "continue"),
        (49.99, "continue"),
        ("12.50", "continue"),
        (50, "continue"),  # automatic wins on a shared boundary
        (50.01, "require_approval"),
        (250, "require_approval"),
        (250.01, "block"),
        (-0.01, "block"),
        ("fifty", "block"),
        ("", "block"),
        (None, "block"),
        (True, "block"),
        (math.nan, "block"),
        (math.inf, "block"),
        ([50], "block"),
        ("1e400", "block"),
        (10**400, "block"),
    ],
)
def test_numeric_range_table(value, action):
    assert rules.judge(REFUND, value).action == action


def test_numeric_range_hard_block_comes_before_automatic():
    wide = REFUND.model_copy(update={"auto_approve": REFUND.require_approval.model_copy(update={"max": 1000.0})})
    assert rules.judge(wide, 900).action == "block"


def test_numeric_range_in_a_gap_is_blocked():
    gap = gate(type="numeric_range", auto_approve={"min": 0, "max": 10}, require_approval={"min": 20, "max": 30})
    assert rules.judge(gap, 15).action == "block"


def test_numeric_range_without_any_range_is_blocked():
    assert rules.judge(gate(type="numeric_range"), 1).action == "block"


def test_numeric_range_clamp_rewrites_to_the_nearest_bound():
    clamp = gate(
        type="numeric_range",
        config={"clamp": True},
        auto_approve={"min": 0, "max": 10},
        block={"outside": [0, 10]},
    )
    assert rules.judge(clamp, 99) == ("continue", "passed", "Clamped", 10.0)


def test_numeric_range_clamp_into_an_approval_range_still_blocks():
    clamp = REFUND.model_copy(update={"config": {"clamp": True}})
    assert rules.judge(clamp, 999).action == "block"


@given(st.one_of(st.floats(), st.integers(), st.text(max_size=20), st.none(), st.booleans()))
def test_numeric_range_never_continues_outside_its_ranges(value):
    answer = rules.judge(REFUND, value)
    if answer.action != "block":
        assert 0 <= float(value) <= 250
    if answer.action == "continue":
        assert float(value) <= 50


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_numeric_range_larger_amounts_are_never_treated_more_kindly(one, other):
    order = ["continue", "require_approval", "block"]
    low, high = sorted((abs(one), abs(other)))
    assert order.index(rules.judge(REFUND, low).action) <= order.index(rules.judge(REFUND, high).action)


@pytest.mark.parametrize(
    ("value", "action"),
    [
        ("yes", "continue"),
        ("maybe", "require_approval"),
        ("no", "block"),
        ("YES", "block"),
        (None, "block"),
        (1, "block"),
    ],
)
def test_string_match_table(value, action):
    match = gate(type="string_match", allowed_values=["yes"], approval_values=["maybe"])
    assert rules.judge(match, value).action == action


@pytest.mark.parametrize(
    ("config", "value", "action"),
    [
        ({"pattern": "^a+$"}, "aaa", "continue"),
        ({"pattern": "^a+$"}, "AAA", "block"),
        ({"pattern": "^a+$", "ignore_case": True}, "AAA", "continue"),
        ({"pattern": "a"}, "bab", "continue"),
        ({"pattern": "a"}, None, "block"),
        ({"pattern": "a"}, 7, "block"),
        ({"pattern": "a"}, "a" * (rules.MAX_TEXT + 1), "block"),
        ({}, "a", "block"),
    ],
)
def test_regex_table(config, value, action):
    assert rules.judge(gate(type="regex", config=config), value).action == action


def test_regex_redact_rewrites_and_continues():
    redact = gate(type="regex", config={"redact": r"\d{4}", "with": r"\1[number]"})
    assert rules.judge(redact, "card 4111 ok") == ("continue", "passed", "Rewritten", r"card \1[number] ok")


@pytest.mark.parametrize(
    ("file", "action", "code"),
    [
        (None, "block", "path_forbidden"),
        (rules.FileFacts(False, 10), "block", "path_forbidden"),
        (rules.FileFacts(True, None), "block", "file_missing"),
        (rules.FileFacts(True, 101), "block", "file_too_large"),
        (rules.FileFacts(True, 100), "continue", "passed"),
    ],
)
def test_file_valid_table(file, action, code):
    answer = rules.judge(gate(type="file_valid", config={"max_size_bytes": 100}), "x", file=file)
    assert answer.action == action
    assert answer.code == code


@pytest.mark.parametrize("path", ["../x", "a/../../x", "", "a\0b", None, 3])
def test_permitted_path_that_leaves_is_refused(path):
    assert not rules.is_permitted_path(path)


@given(st.one_of(st.none(), st.floats(), st.text()))
def test_approval_always_asks_whatever_the_value(value):
    assert rules.judge(gate(type="approval_always"), value).action == "require_approval"


def test_predicate_of_a_type_that_is_none_blocks():
    assert rules.judge(gate(type="custom_check"), "x").action == "block"


@pytest.mark.parametrize(
    ("expect", "output", "exit_code", "met"),
    [
        ({"exit_code": 0}, "", 0, True),
        ({"exit_code": 0}, "", 1, False),
        ({"exit_code": 0}, "", None, False),
        ({"exit_code": 3}, "", 3, True),
        ({"equals": "filled"}, "filled\n", 0, True),
        ({"equals": "filled"}, "filled\n\n", 0, False),
        ({"equals": ""}, "", 0, True),
        ({"contains": "ok"}, "all ok here", 0, True),
        ({"contains": "ok"}, "no", 0, False),
        ({"regex": "^a.c$"}, "abc\n", 0, True),
        ({"regex": "^a.c$"}, "xabc", 0, False),
        ({"output_lt": 10}, "9.5\n", 0, True),
        ({"output_lt": 0}, "-1", 0, True),
        ({"output_lt": 10}, "10", 0, False),
        ({"output_gt": 10}, "10.01", 0, True),
        ({"output_gt": 10}, "many", 0, False),
        ({"not_empty": True}, " \n", 0, False),
        ({"not_empty": True}, "x", 1, True),
        ({"file_exists": "out/a"}, "", 0, False),
    ],
)
def test_expectation_table(expect, output, exit_code, met):
    assert rules.meets(Expectation(**expect), output=output, exit_code=exit_code) is met


def test_expectation_file_that_exists_is_met():
    assert rules.meets(Expectation(file_exists="out/a"), output="", exit_code=0, file_exists=True)


def test_expectation_file_outside_is_never_met():
    assert not rules.meets(Expectation(file_exists="../a"), output="", exit_code=0, file_exists=True)


@pytest.mark.parametrize(
    "fields", [{}, {"not_empty": False}, {"exit_code": 0, "equals": ""}, {"regex": "("}, {"unknown": 1}]
)
def test_expectation_that_is_none_or_several_is_refused(fields):
    with pytest.raises(ValidationError):
        Expectation(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"on": "after_step"},
        {"after_step": 1},
        {"on": "sometimes"},
        {"name": "two words"},
        {"name": ""},
        {"config": {"pattern": "("}},
        {"config": {"redact": "["}},
        {"lane": "quality"},
        {"auto_approve": {"min": 1}},
    ],
)
def test_gate_that_cannot_be_evaluated_is_refused(fields):
    with pytest.raises(ValidationError):
        gate(**fields)


@pytest.mark.parametrize(
    ("provider", "promoted", "lane"),
    [
        ("llm", False, GateLane.QUALITY),
        ("llm", True, GateLane.POLICY),
        ("predicate", False, GateLane.POLICY),
        ("script", True, GateLane.POLICY),
        ("guardrails_ai", False, GateLane.POLICY),
        ("custom", False, GateLane.POLICY),
    ],
)
def test_lane_is_derived_from_the_provider(provider, promoted, lane):
    assert gate(provider=provider, promote_to_policy=promoted).lane == lane


def test_plan_dict_is_the_contract_vector():
    cap = gate(
        name="cap",
        type="numeric_range",
        extract="usd",
        auto_approve={"min": 0, "max": 25},
        block={"outside": [0, 100]},
        on_block="abort",
    )
    assert cap.to_plan_dict() == vectors.GATE


def test_plan_dict_hashes_like_the_contract_plan():
    plan = {**vectors.BASE, "gates": [GateSpec(**vectors.GATE).to_plan_dict()]}
    assert sha256_hex(plan) == "6abecf496ebb3f2a49ec58c4a044daa41b797e8ecfa1a23d0f394c10d945f3f1"


def test_plan_dict_survives_json():
    assert GateSpec(**json.loads(json.dumps(REFUND.to_plan_dict()))) == REFUND


def test_escalation_of_the_goal_comes_before_the_built_in():
    mine = EscalationSpec(action="respond", message="Mine")
    assert rules.escalation_for("polite_redirect", {"polite_redirect": mine}) == (mine, True)


def test_escalation_polite_redirect_is_built_in():
    spec, known = rules.escalation_for("polite_redirect", {})
    assert spec.action == EscalationKind.RESPOND
    assert spec.message == "I can't help with that. How else can I assist you?"
    assert known is True


def test_escalation_unknown_is_a_report_that_is_noted():
    spec, known = rules.escalation_for("abort_trade", {})
    assert spec.action == EscalationKind.REPORT
    assert known is False


def test_escalation_fallbacks_follow_in_order():
    chain = {
        "rephrase": EscalationSpec(action="suppress_and_rephrase", fallback="human"),
        "human": EscalationSpec(action="transfer_to_queue", queue="support_l2"),
    }
    assert [step.action for step in rules.escalation_steps("rephrase", chain)] == [
        "suppress_and_rephrase",
        "transfer_to_queue",
    ]


def test_escalation_fallbacks_in_a_circle_end():
    circle = {"a": EscalationSpec(action="retry", fallback="b"), "b": EscalationSpec(action="retry", fallback="a")}
    assert len(rules.escalation_steps("a", circle)) == 2


def test_mutations_outside_the_list_are_dropped_by_name():
    changes = {"response": "x", "level": "verified", "tool_args": "no mapping", "bad key": 1}
    assert rules.split_mutations(changes) == ({"response": "x"}, ("level", "tool_args", "unspeakable"))


def test_merge_of_tool_args_is_shallow():
    merged = rules.merge({"tool_args": {"a": 1, "b": {"c": 1}}}, {"tool_args": {"b": {"d": 2}}})
    assert merged == {"tool_args": {"a": 1, "b": {"d": 2}}}


@given(st.dictionaries(st.text(max_size=12), st.text(max_size=5), max_size=6))
def test_mutations_never_carry_another_key_into_the_context(changes):
    kept, _ = rules.split_mutations(changes)
    assert set(rules.merge({"response": "r"}, kept)) <= {"response", "message", "tool_args"}


ENDLESS = r"^(a|a)*$"


@pytest.mark.parametrize("config", [{"pattern": ENDLESS}, {"redact": ENDLESS}])
def test_pattern_that_takes_for_ever_is_a_no_at_once(config):
    """One tenant's pattern must not stop the process that answers everybody."""
    began = time.monotonic()
    report = check_gates(
        [gate(on="every_user_message", type="regex", config=config)], "every_user_message", {"message": "a" * 80 + "!"}
    )
    assert report.blocked.code == GateCode.PROVIDER_FAILED
    assert time.monotonic() - began < 1


def test_expectation_that_takes_for_ever_is_not_met():
    assert not rules.meets(Expectation(regex=ENDLESS), output="a" * 80 + "!", exit_code=0)
