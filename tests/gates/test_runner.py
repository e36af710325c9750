"""Lanes, order, mutations and scripts, run for real (spec 5.4, 5.5)."""

import os
from pathlib import Path

import pytest

from apps.audit.enums import AuditEvent
from apps.gates.enums import GateAction, GateCode
from apps.gates.providers import PROVIDERS
from apps.gates.providers import script as script_provider
from apps.gates.schemas import GateReport, GateResult, GateSpec, Subject
from apps.gates.services import check_gates
from sandbox import Choice, Kind, configure

MESSAGE, RESPONSE, TOOL = "every_user_message", "every_agent_response", "on_tool_call"


def gate(name="g", on=MESSAGE, **fields) -> GateSpec:
    return GateSpec(**{"name": name, "on": on, "type": "regex", "config": {"pattern": "."}, **fields})


def script(body: str, name="s", on=MESSAGE, **fields) -> tuple[GateSpec, dict]:
    """A script gate and its files."""
    spec = GateSpec(name=name, on=on, provider="script", **{"check": "check.py", "type": "regex", **fields})
    return spec, {name: {"skill": {"check.py": body.encode()}}}


def run_script(body: str, context=None, **fields):
    spec, files = script(body, **fields)
    return check_gates([spec], spec.on, context or {"message": "hello"}, files=files)


def events(report) -> list[str]:
    return [event for event, _ in report.audit]


def test_gates_of_another_trigger_are_not_asked():
    report = check_gates([gate(on=RESPONSE, config={"pattern": "x"})], MESSAGE, {"message": "hello"})
    assert report.policy == ()


def test_block_names_the_gate_and_its_escalation():
    report = check_gates([gate(config={"pattern": "x"}, on_block="polite_redirect")], MESSAGE, {"message": "hello"})
    assert report.blocked.gate_name == "g"
    assert report.blocked.on_block == "polite_redirect"


def test_block_lets_the_remaining_policy_gates_run():
    gates = [gate("a", config={"pattern": "x"}), gate("b", config={"pattern": "y"}), gate("c")]
    report = check_gates(gates, MESSAGE, {"message": "hello"})
    assert [result.action for result in report.policy] == ["block", "block", "continue"]


def test_block_is_the_first_one():
    gates = [gate("a", config={"pattern": "x"}), gate("b", config={"pattern": "y"})]
    assert check_gates(gates, MESSAGE, {"message": "hello"}).blocked.gate_name == "a"


def test_block_is_noted_for_every_gate_and_marked_once_as_first():
    gates = [gate("a", config={"pattern": "x"}), gate("b", config={"pattern": "y"})]
    report = check_gates(gates, MESSAGE, {"message": "hello"})
    assert [data["first"] for event, data in report.audit if event == AuditEvent.GATE_BLOCKED] == [True, False]


def test_block_hides_a_wish_for_approval():
    gates = [gate("a", type="approval_always"), gate("b", config={"pattern": "x"})]
    assert check_gates(gates, MESSAGE, {"message": "hello"}).needs_approval is None


def test_approval_is_asked_when_nothing_blocks():
    report = check_gates([gate("a"), gate("b", type="approval_always")], MESSAGE, {"message": "hello"})
    assert report.needs_approval.gate_name == "b"


@pytest.mark.parametrize("provider", ["guardrails_ai", "llm"])
def test_missing_provider_blocks_in_the_policy_lane(provider, monkeypatch, settings, tmp_path):
    settings.GUARDRAILS_DIR = tmp_path
    monkeypatch.delitem(PROVIDERS, "llm")
    report = check_gates([gate(provider=provider)], MESSAGE, {"message": "hello"})
    assert report.blocked.lane == "policy"
    assert report.blocked.reason == f"Unknown check: {provider}"


def test_provider_that_throws_blocks(monkeypatch):
    def broken(request):
        raise ZeroDivisionError

    monkeypatch.setattr(PROVIDERS["custom"], "evaluate", broken)
    report = check_gates([gate(provider="custom")], MESSAGE, {"message": "hello"})
    assert report.blocked.code == GateCode.PROVIDER_FAILED


def test_gate_with_tools_is_only_about_them():
    refund = gate(on=TOOL, type="approval_always", config={"tools": ["refund"]})
    report = check_gates([refund], TOOL, {"tool_name": "order_status", "tool_args": {}})
    assert report.policy == ()


def test_gate_reads_the_tool_argument_it_names():
    cap = gate(on=TOOL, type="numeric_range", extract="amount", config={}, auto_approve={"min": 0, "max": 50})
    assert check_gates([cap], TOOL, {"tool_name": "refund", "tool_args": {"amount": 20}}).blocked is None


def test_gate_about_the_called_tool_believes_no_argument_of_that_name():
    """A tool of somebody else's may have an argument `tool_name`, and a model may say in it whatever passes."""
    named = gate(on=TOOL, type="string_match", extract="tool_name", config={}, allowed_values=["look"])
    report = check_gates([named], TOOL, {"tool_name": "run_anything", "tool_args": {"tool_name": "look"}})
    assert report.blocked is not None


def test_gate_reads_a_tool_argument_before_anything_else_of_its_name():
    cap = gate(on=TOOL, type="numeric_range", extract="amount", config={}, auto_approve={"min": 0, "max": 50})
    report = check_gates([cap], TOOL, {"tool_args": {"amount": 99}, "values": {"amount": 1}, "amount": 1})
    assert report.blocked is not None


def test_gate_about_a_missing_argument_blocks():
    cap = gate(on=TOOL, type="numeric_range", extract="amount", config={}, auto_approve={"min": 0, "max": 50})
    assert check_gates([cap], TOOL, {"tool_name": "refund", "tool_args": {}}).blocked.code == "not_a_number"


def test_gate_of_a_step_is_only_about_that_step():
    check = gate(on="after_step", after_step=2, extract="score", config={"pattern": "x"})
    assert check_gates([check], "after_step", {"step": 1, "values": {"score": "y"}}).policy == ()


def test_mutation_is_seen_by_the_next_gate():
    gates = [gate("a", config={"redact": "secret", "with": "thing"}), gate("b", config={"pattern": "secret"})]
    report = check_gates(gates, MESSAGE, {"message": "my secret"})
    assert report.blocked.gate_name == "b"


def test_mutation_is_the_context_of_all_later_steps():
    report = check_gates([gate(on=RESPONSE, config={"redact": "4111", "with": "#"})], RESPONSE, {"response": "4111"})
    assert report.context["response"] == "#"


def rewritten(message: str) -> dict:
    ((event, data),) = check_gates(
        [gate(config={"redact": "secret", "with": "*"})], MESSAGE, {"message": message}
    ).audit
    assert event == AuditEvent.GATE_MUTATION
    return data


def test_mutation_is_noted_with_sizes_and_marks_only():
    data = rewritten("my secret")
    sizes = {"gate": "g", "code": "passed", "key": "message", "before": 9, "after": 4}
    assert {name: value for name, value in data.items() if not name.endswith("_mark")} == sizes


def test_mark_tells_the_same_text_from_another():
    marks = [rewritten(text)["before_mark"] for text in ("my secret", "my secret", "no secret")]
    assert marks[0] == marks[1] != marks[2]


def test_mark_cannot_be_made_without_the_platforms_key(settings):
    known = rewritten("my secret")["before_mark"]
    settings.SECRET_KEY = "another"
    assert rewritten("my secret")["before_mark"] != known


def test_file_valid_link_that_leaves_the_root_blocks(tmp_path):
    os.symlink("/etc/passwd", tmp_path / "link")
    valid = gate(type="file_valid", extract="path", config={"roots": [str(tmp_path)]}, on=TOOL)
    report = check_gates([valid], TOOL, {"tool_args": {"path": "link"}})
    assert report.blocked.code == GateCode.PATH_FORBIDDEN


def test_file_valid_existing_file_continues(tmp_path: Path):
    (tmp_path / "a.txt").write_text("x")
    valid = gate(type="file_valid", extract="path", config={"roots": [str(tmp_path)]}, on=TOOL)
    assert check_gates([valid], TOOL, {"tool_args": {"path": "a.txt"}}).blocked is None


def quality(result: GateResult, monkeypatch) -> GateSpec:
    monkeypatch.setattr(PROVIDERS["llm"], "evaluate", lambda request: result)
    return gate("q", provider="llm")


@pytest.mark.parametrize("action", [GateAction.BLOCK, GateAction.REQUIRE_APPROVAL])
def test_quality_gate_that_decides_is_coerced_and_noted(action, monkeypatch):
    spec = quality(GateResult("q", "quality", action, GateCode.CHECK_FAILED), monkeypatch)
    report = check_gates([spec], MESSAGE, {"message": "hello"})
    assert report.blocked is None
    assert report.quality[0].action == "continue"
    assert AuditEvent.QUALITY_LANE_VIOLATION in events(report)


def test_quality_gate_cannot_rewrite(monkeypatch):
    result = GateResult("q", "quality", GateAction.CONTINUE, GateCode.PASSED, modified_context={"message": "mine"})
    report = check_gates([quality(result, monkeypatch)], MESSAGE, {"message": "hello"})
    assert report.context["message"] == "hello"
    assert report.quality[0].modified_context is None
    assert AuditEvent.QUALITY_LANE_VIOLATION in events(report)


@pytest.mark.parametrize("action", [GateAction.BLOCK, GateAction.REQUIRE_APPROVAL])
def test_gate_that_does_not_let_pass_rewrites_nothing(action, monkeypatch):
    result = GateResult("p", "policy", action, GateCode.FOUND, modified_context={"message": "mine"})
    monkeypatch.setattr(PROVIDERS["custom"], "evaluate", lambda request: result)
    report = check_gates([gate("p", provider="custom")], MESSAGE, {"message": "hello"})
    assert report.context == {"message": "hello"} and AuditEvent.GATE_MUTATION not in events(report)


def test_quality_gate_runs_after_policy_on_the_rewritten_context(monkeypatch):
    seen = []
    ok = GateResult("q", "quality", GateAction.CONTINUE, GateCode.PASSED, score=0.5)
    monkeypatch.setattr(PROVIDERS["llm"], "evaluate", lambda request: seen.append(request.context["message"]) or ok)
    gates = [gate("q", provider="llm"), gate("r", config={"redact": "hello", "with": "bye"})]
    check_gates(gates, MESSAGE, {"message": "hello"})
    assert seen == ["bye"]


def test_script_without_expectation_continues_on_exit_zero():
    assert run_script("print('fine')").blocked is None


@pytest.mark.parametrize("body", ["raise SystemExit(1)", "1/0", "import os; os.abort()", "not python"])
def test_script_that_ends_badly_blocks(body):
    assert run_script(body).blocked.code == GateCode.CHECK_FAILED


def test_script_that_floods_blocks():
    assert run_script("while True: print('x' * 999)").blocked.code == GateCode.SCRIPT_FAILED


def test_script_that_hangs_blocks_in_time(monkeypatch):
    monkeypatch.setattr(script_provider, "SCRIPT_SECONDS", 0.5)
    assert run_script("import time; time.sleep(60)").blocked.code == GateCode.SCRIPT_FAILED


def test_script_that_is_missing_blocks():
    spec, _ = script("")
    assert check_gates([spec], MESSAGE, {"message": "hello"}).blocked.code == GateCode.CHECK_FAILED


def test_script_where_nothing_can_be_isolated_blocks(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    configure(Choice(kind=Kind.DOCKER))
    try:
        code = run_script("print('fine')").blocked.code
    finally:
        configure(Choice())
    assert code == GateCode.PROVIDER_FAILED


def test_script_expectation_sees_the_lines_that_are_no_values():
    report = run_script("print('verified'); print('customer_id: C-1')", check_expect={"equals": "verified"})
    assert report.policy[0].subject == Subject("C-1")


def test_script_expectation_not_met_blocks_and_names_nobody():
    report = run_script("print('no'); print('customer_id: C-1')", check_expect={"equals": "verified"})
    assert report.blocked.code == GateCode.CHECK_FAILED
    assert report.blocked.subject is None


@pytest.mark.parametrize("action", [GateAction.BLOCK, GateAction.REQUIRE_APPROVAL])
def test_check_that_did_not_pass_verifies_nobody_whomever_it_names(action):
    named = GateResult("s", "policy", action, GateCode.CHECK_FAILED, subject=Subject("C-1"))
    assert GateReport(policy=(named,)).verified == ()


def test_script_extracted_value_goes_to_the_predicate():
    report = run_script("print('risk: 0.9')", type="numeric_range", extract="risk", block={"outside": [0, 0.5]})
    assert report.blocked.code == GateCode.OUT_OF_RANGE


def test_script_value_that_is_missing_blocks():
    report = run_script("print('x')", type="numeric_range", extract="risk", auto_approve={"min": 0, "max": 1})
    assert report.blocked.code == GateCode.NOT_A_NUMBER


def test_script_rewrites_what_it_may():
    body = 'print(\'modified_context: {"message": "clean", "tool_name": "refund"}\')'
    report = run_script(body)
    assert report.context == {"message": "clean"}


def test_script_rewriting_what_it_may_not_is_noted():
    report = run_script('print(\'modified_context: {"access_level": "verified"}\')')
    assert report.audit == ((AuditEvent.REJECTED_MUTATION, {"gate": "s", "code": "passed", "key": "access_level"}),)


@pytest.mark.parametrize("printed", ["modified_context: {", "modified_context: 7", "modified_context: " + "[" * 9999])
def test_script_that_prints_a_broken_rewrite_blocks(printed):
    assert run_script(f"print({printed!r})").blocked.code == GateCode.SCRIPT_FAILED


def test_script_gets_values_as_environment_only():
    body = "import os, sys; print(sys.argv[1:], os.environ['MESSAGE'])"
    report = run_script(body, {"message": "'; rm -rf / #"}, config={"args_from_env": ["MESSAGE"]})
    assert report.policy[0].value == "[] '; rm -rf / #"


def test_script_gets_no_value_it_did_not_ask_for():
    body = "import os; print(sorted(os.environ))"
    assert "MESSAGE" not in run_script(body, {"message": "x"}).policy[0].value


def test_script_with_a_nul_in_its_value_still_runs():
    report = run_script("print('ok')", {"message": "a\0b"}, config={"args_from_env": ["MESSAGE"]})
    assert report.blocked is None


def test_value_that_looks_like_a_command_is_a_value(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    body = "import os, pathlib; print(os.environ['MESSAGE'], list(pathlib.Path('.').glob('pwned')))"
    report = run_script(body, {"message": "'; touch pwned; #"}, config={"args_from_env": ["MESSAGE"]})
    assert report.policy[0].value == "'; touch pwned; # []"
    assert list(tmp_path.iterdir()) == []


def test_value_that_looks_like_a_command_is_no_part_of_one():
    """A command of the tenant's is split without a shell, and knows values from its environment only."""
    config = {"args_from_env": ["MESSAGE"]}
    spec = GateSpec(name="s", on=MESSAGE, provider="script", config=config, check_command="echo $MESSAGE; touch pwned")
    report = check_gates([spec], MESSAGE, {"message": "'; touch pwned; #"})
    assert report.policy[0].value == "$MESSAGE; touch pwned"
