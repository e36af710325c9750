"""Plans as models write them: parsed, or rejected with a code that says what is wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.work import plans
from apps.work.schemas import WorkItemSpec
from kernel.errors import SilasError
from llm.calls import PlannedCall, call_block
from tests.approvals import vectors

FRONT = "id: task-1\ntype: task\ntitle: T"
CALL = PlannedCall("update_address", {"policy": "HM-1", "postcode": "LS11 5PS"})


def plan(front: str = FRONT, body: str = "B") -> str:
    return f"---\n{front}\n---\n{body}\n"


def refusal(markdown: str) -> SilasError:
    with pytest.raises(SilasError) as caught:
        plans.parse(markdown)
    return caught.value


@pytest.mark.parametrize(
    ("markdown", "code"),
    [
        ("# Just prose", "plan_front_matter_missing"),
        ("", "plan_front_matter_missing"),
        (f"---\n{FRONT}\nno end", "plan_front_matter_unclosed"),
        (plan("- a\n- b"), "plan_front_matter_invalid"),
        (plan("just words"), "plan_front_matter_invalid"),
        (plan("id: [unclosed"), "plan_front_matter_invalid"),
        (plan(FRONT + "\ntitle: again"), "plan_front_matter_invalid"),
        (plan(FRONT + "\nbudget: &b {max_tokens: 1}\nskills: *b"), "plan_front_matter_invalid"),
        (plan(FRONT + "\nrun: !!python/object/apply:os.system ['true']"), "plan_front_matter_invalid"),
        (plan(FRONT + f"\nbudget: {{max_tokens: {'9' * 5000}}}"), "plan_front_matter_invalid"),
        (plan(FRONT + "\nbudget: &b {max_tokens: 1}"), "plan_front_matter_invalid"),
        (plan(FRONT + "\nskills: !!set {a, b}"), "plan_front_matter_invalid"),
        (plan(FRONT + "\ndomain: !!binary aGVsbG8="), "plan_front_matter_invalid"),
        (plan(FRONT + "\n? {a: 1}\n: 2"), "plan_front_matter_invalid"),
        (plan(FRONT + "\nskills: " + "[" * 9000), "plan_front_matter_invalid"),
        (plan(FRONT + "\ndomain: " + "x" * 20_000), "plan_too_long"),
        (plan(FRONT + "\nbudgets: {max_tokens: 1}"), "plan_field_unknown"),
        (plan(FRONT + "\nlane: stream"), "plan_field_unknown"),
        (plan(FRONT + "\nbudget: {max_token: 1}"), "plan_field_invalid"),
        (plan("type: task\ntitle: T"), "plan_field_missing"),
        (plan("id: task-1\ntype: task\ntitle:"), "plan_field_missing"),
        (plan("id: t\ntype: system\ntitle: T"), "plan_field_invalid"),
        (plan(FRONT + "\nverify: {name: a, run: b}"), "plan_field_invalid"),
        (plan(FRONT + "\nverify: [{name: a, run: 'x', expect: {exit_code: 0, equals: a}}]"), "plan_field_invalid"),
        (plan(FRONT + '\nverify: [{name: a, run: "x \'y", expect: {exit_code: 0}}]'), "plan_field_invalid"),
        (plan(FRONT + "\nbudget: {max_tokens: 0}"), "plan_field_invalid"),
        (plan(FRONT + "\nbudget: {max_cost_usd: 1e400}"), "plan_field_invalid"),
        (plan(FRONT + "\nagent: stream"), "plan_field_invalid"),
        (plan(body="```call\nnot json\n```"), "bad_call_block"),
        (plan(body='```call\n{"tool": "x", "args": {}, "sudo": true}\n```'), "bad_call_block"),
        (plan(body="x" * 50_001), "plan_too_long"),
    ],
)
def test_parse_of_broken_plan_is_refused(markdown: str, code: str) -> None:
    assert refusal(markdown).code == code


def test_parse_of_invalid_field_names_the_field() -> None:
    assert refusal(plan(FRONT + "\nbudget: {max_attempts: none}")).extra == {"field": "budget.max_attempts", "line": 5}


@pytest.mark.parametrize(
    ("markdown", "line"),
    [
        ("no front matter", 1),
        (plan(FRONT + "\nskills: [a\ndomain: b"), 6),
        (plan(FRONT + "\ndomain: a\ntitle: again"), 6),
        (plan(FRONT + "\nskills:\n  - a\n  - *b"), 7),
        (plan(FRONT + "\nskills: [a]\nsurprise: 1"), 6),
        (plan(FRONT + "\nbudget:\n  max_tokens: 1\n  max_cost_usd: 0"), 7),
        (plan(FRONT + "\nverify:\n  name: a\n  run: b"), 6),
        (plan(FRONT + "\nverify:\n  - {name: a, run: x, expect: {exit_code: 0}}\n  - {name: b, run: x}"), 7),
        (plan("id: a\ntype: tusk\ntitle: T"), 3),
        (plan("id: a\ntype: task"), 2),
    ],
)
def test_parse_of_broken_plan_names_the_line(markdown: str, line: int) -> None:
    refused = refusal(markdown)
    assert refused.extra["line"] == line
    assert refused.message[: len(f"Line {line}:")] == f"Line {line}:"


def test_parse_of_billion_laughs_is_refused_at_the_first_anchor() -> None:
    laughs = "a: &a [x]\n" + "\n".join(
        f"{chr(97 + n)}: &{chr(97 + n)} [*{chr(96 + n)}, *{chr(96 + n)}]" for n in range(1, 20)
    )
    assert (
        refusal(plan(laughs)).message == "Line 2: the front matter is not plain YAML: anchors and tags are not allowed."
    )


@given(st.text(max_size=200))
def test_parse_of_any_text_refuses_or_answers(text: str) -> None:
    try:
        answer = plans.parse(f"---\n{text}\n---\nB").type
    except SilasError as refused:
        answer = refused.code
    assert answer.startswith(("plan_", "task", "goal", "project"))


def test_parse_of_smallest_plan_has_the_golden_hash() -> None:
    assert plans.parse(plan()).plan_hash == vectors.V1


def test_parse_of_checks_and_skills_has_the_golden_hash() -> None:
    front = FRONT + "\nskills: [coding, git]\nverify:\n  - {name: tests_pass, run: pytest -q, expect: {exit_code: 0}}"
    assert plans.parse(plan(front)).plan_hash == vectors.V2


def test_parse_of_gate_has_the_golden_hash() -> None:
    gate = (
        "\ngates:\n  - name: cap\n    on: on_tool_call\n    type: numeric_range\n    extract: usd"
        "\n    auto_approve: {min: 0, max: 25}\n    block: {outside: [0, 100]}\n    on_block: abort"
    )
    assert plans.parse(plan(FRONT + gate)).plan_hash == vectors.V3


def test_parse_of_whole_budget_number_hashes_as_a_float() -> None:
    assert plans.parse(plan(FRONT + "\nbudget: {max_cost_usd: 2}")).plan_hash == vectors.V1


def test_parse_in_one_code_fence_is_read() -> None:
    assert plans.parse(f"```markdown\n{plan()}```").plan_hash == vectors.V1


def test_parse_with_windows_line_ends_is_read() -> None:
    assert plans.parse(plan().replace("\n", "\r\n")).plan_hash == vectors.V1


@pytest.mark.parametrize("claim", ["needs_approval: false", "approval_token: abc", "status: done"])
def test_parse_of_runtime_claim_is_ignored(claim: str) -> None:
    assert plans.parse(plan(f"{FRONT}\n{claim}")).plan_hash == vectors.V1


def test_lenient_parse_ignores_what_a_model_made_up() -> None:
    assert plans.parse(plan(f"{FRONT}\nsurprise: 1"), lenient=True).plan_hash == vectors.V1


@pytest.mark.parametrize("word", ["yes", "on", "off", "12:30:00", "2026-02-01", "0o17", "007"])
def test_parse_of_word_that_looks_like_a_value_is_text(word: str) -> None:
    assert plans.parse(plan(f"id: a\ntype: task\ntitle: {word}")).title == word


def test_parse_keeps_a_rule_in_the_body() -> None:
    assert plans.parse(plan(body="one\n\n---\n\ntwo")).body == "one\n\n---\n\ntwo"


def test_parse_of_always_on_goal_is_a_stream() -> None:
    assert plans.parse(plan("id: g\ntype: goal\ntitle: T\nschedule: always_on")).agent == "stream"


def test_parse_of_always_on_goal_keeps_an_explicit_lane() -> None:
    front = "id: g\ntype: goal\ntitle: T\nschedule: always_on\nagent: ephemeral"
    assert plans.parse(plan(front)).agent == "ephemeral"


def test_calls_of_plan_are_the_fenced_ones() -> None:
    body = f"First:\n\n{call_block(CALL)}\n\n> {call_block(CALL)}\n"
    assert plans.parse(plan(body=body)).calls == (CALL,)


def test_spec_text_reads_back_as_the_same_plan() -> None:
    spec = plans.parse(plan(FRONT + "\nverify: [{name: a, run: x, expect: {output_lt: 3}}]"))
    assert WorkItemSpec.model_validate_json(spec.as_text()) == spec
