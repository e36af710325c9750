"""Evaluate gates: one function per provider; a gate without a known provider blocks (spec 5.4, 5.5).

Values of the context reach a script as environment variables only, never as part of a command. Called by `services`.
"""

from __future__ import annotations

import json
import logging
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from apps.gates import guardrails, predicates, rules
from apps.gates.allowance import AskModel
from apps.gates.claims import Claim, find_claim
from apps.gates.detectors.normalise import Spellings
from apps.gates.enums import GateAction, GateCode, GateLane, GateProvider, GateTrigger, GateType
from apps.gates.schemas import GateResult, GateSpec, Subject
from apps.gates.text_checks import Judge, judge_text
from kernel.canonical import canonical_json
from llm.judge import Opinion, Question, Ruling
from sandbox import SandboxResult, SandboxSpec, SandboxUnavailable, run
from sandbox.spec import Mount

_log = logging.getLogger(__name__)
SCRIPT_SECONDS = 30.0
# A script that checks identity needs a claim of both.
_CLAIM = frozenset({"CUSTOMER_NAME", "CUSTOMER_DOB"})


@dataclass(frozen=True)
class Request:
    """Input of one evaluation. `files` are a script's read-only mounts. `is_level_gate`: some access level requires
    this gate, so without a claim it only withholds the level (contract silas 16). `ask` is the model, if there is one.
    `spellings` are shared by the run."""

    gate: GateSpec
    context: Mapping[str, Any]
    files: Mapping[str, Mount]
    is_level_gate: bool = False
    ask: AskModel | None = None
    spellings: Spellings = field(default_factory=Spellings)


def evaluate_predicate(request: Request) -> GateResult:
    gate = request.gate
    value = extract_value(gate, request.context)
    file = _file_facts(gate, value) if gate.type == GateType.FILE_VALID else None
    answer = predicates.judge(gate, value, file=file)
    changes = None if answer.changed is None else _changes(gate, answer.changed)
    return _result(
        gate, answer.action, answer.code, answer.reason, value=_stored_value(value), modified_context=changes
    )


def evaluate_script(request: Request) -> GateResult:
    """Run a script gate. Fails closed: a script that cannot run, fails or prints malformed output blocks."""
    gate = request.gate
    claim = claim_for(gate, request.context)
    if claim is None and needs_claim(gate) and request.is_level_gate:
        return _result(gate, GateAction.CONTINUE, GateCode.NO_CLAIM, "The visitor hasn't identified themselves")
    try:
        outcome = run(_script_spec(request, {**request.context, **(claim.as_values() if claim else {})}))
    except SandboxUnavailable as refused:
        return _result(gate, GateAction.BLOCK, GateCode.PROVIDER_FAILED, refused.message)
    return _judge_script(gate, outcome)


def evaluate_custom(request: Request) -> GateResult:
    """Run the detector that `check` names with the settings in `config` (contract silas 2: a python callable)."""
    return _judge_text(request, None)


def evaluate_guardrails(request: Request) -> GateResult:
    """Run the same detectors as validators of guardrails-ai; blocks if the library is not installed."""
    if not guardrails.is_installed():
        return _result(
            request.gate, GateAction.BLOCK, GateCode.PROVIDER_MISSING, f"No provider: {request.gate.provider}"
        )
    return _judge_text(request, guardrails.validate)


def evaluate_llm(request: Request) -> GateResult:
    """Ask a model. No answer, a late one or prose means no opinion in the quality lane and a block in the policy lane
    (spec 5.5.3). Only a score and flags of the model's answer are passed on, never its text."""
    gate = request.gate
    try:
        answer = _ask_model(request)
    except Exception as error:  # noqa: BLE001 - every failure of a model is handled alike
        _log.warning("gate_model_failed gate=%s error=%s", gate.name, type(error).__name__)
        return _no_opinion(gate)
    if isinstance(answer, Ruling):
        action = GateAction(answer.action)
        code = GateCode.PASSED if action == GateAction.CONTINUE else GateCode.LLM_SAID
        return _result(gate, action, code, _LLM_REASONS[action])
    action = GateAction(answer.action or GateAction.CONTINUE)
    return _result(gate, action, GateCode.PASSED, score=answer.score, flags=tuple(answer.flags))


def _ask_model(request: Request) -> Opinion | Ruling:
    gate, text = request.gate, extract_value(request.gate, request.context)
    if request.ask is None:
        raise LookupError("no model")
    if not isinstance(text, str) or len(text) > rules.MAX_TEXT:
        raise ValueError("no text that could be read as a whole")
    binding = gate.lane == GateLane.POLICY
    known = {name: gate.config[name] for name in ("seconds", "max_tokens", "model") if gate.config.get(name)}
    answer = request.ask(Question(str(gate.config["policy"]), text, binding=binding, **known))
    if not isinstance(answer, Ruling if binding else Opinion):
        raise TypeError("an answer to another question")
    return answer


def _no_opinion(gate: GateSpec) -> GateResult:
    action = GateAction.BLOCK if gate.lane == GateLane.POLICY else GateAction.CONTINUE
    reason = "This couldn't be checked" if action == GateAction.BLOCK else ""
    return _result(gate, action, GateCode.LLM_ERROR, reason, flags=(GateCode.LLM_ERROR.value,))


_LLM_REASONS = {
    GateAction.CONTINUE: "",
    GateAction.BLOCK: "This is against a company policy",
    GateAction.REQUIRE_APPROVAL: "This needs approval",
}

EVALUATE: Mapping[str, Callable[[Request], GateResult]] = {
    GateProvider.PREDICATE: evaluate_predicate,
    GateProvider.SCRIPT: evaluate_script,
    GateProvider.CUSTOM: evaluate_custom,
    GateProvider.GUARDRAILS_AI: evaluate_guardrails,
    GateProvider.LLM: evaluate_llm,
}


def needs_claim(gate: GateSpec) -> bool:
    return gate.type == GateType.CUSTOM_CHECK and bool(_CLAIM & set(gate.config.get("args_from_env") or ()))


def claim_for(gate: GateSpec, context: Mapping[str, Any]) -> Claim | None:
    """The identity that the visitor claims, if this gate needs one and the message states it."""
    if not needs_claim(gate):
        return None
    message, recent = str(context.get("message") or ""), context.get("recent") or ()
    return find_claim(message, recent, known=gate.name in (context.get("verified_gates") or ()))


def extract_value(gate: GateSpec, context: Mapping[str, Any]) -> Any:
    """The variable that the gate names, or the text of its trigger."""
    if gate.extract:
        return rules.lookup(context, gate.extract)
    if gate.on == GateTrigger.ON_TOOL_CALL:
        return canonical_json(context.get("tool_args") or {})
    if gate.on == GateTrigger.ON_CONTENT:
        return context.get("content")
    return context.get("message" if gate.on == GateTrigger.EVERY_USER_MESSAGE else "response")


def _judge_text(request: Request, judge: Judge | None) -> GateResult:
    gate = request.gate
    answer = judge_text(
        gate.check, extract_value(gate, request.context), gate.config, judge=judge, spellings=request.spellings
    )
    changes = None if answer.changed is None else _changes(gate, answer.changed)
    return _result(gate, answer.action, answer.code, answer.reason, modified_context=changes)


def _changes(gate: GateSpec, changed: Any) -> dict[str, Any]:
    if gate.on == GateTrigger.ON_TOOL_CALL:
        return {"tool_args": {gate.extract: changed}} if gate.extract else {}
    if gate.on == GateTrigger.ON_CONTENT:
        return {}
    return {"message" if gate.on == GateTrigger.EVERY_USER_MESSAGE else "response": changed}


def _file_facts(gate: GateSpec, value: Any) -> rules.FileFacts:
    """Facts about the file within the permitted directories `config.roots`. Links are resolved before comparing."""
    if not rules.is_permitted_path(value):
        return rules.FileFacts(permitted=False, size=None)
    for root in (Path(str(root)).resolve() for root in gate.config.get("roots") or ()):
        path = (root / value).resolve()
        if path.is_relative_to(root):
            return rules.FileFacts(permitted=True, size=path.stat().st_size if path.is_file() else None)
    return rules.FileFacts(permitted=False, size=None)


def _script_spec(request: Request, values: Mapping[str, Any]) -> SandboxSpec:
    gate = request.gate
    names: Sequence[str] = gate.config.get("args_from_env") or ()
    env = {name: _as_text(rules.lookup(values, name.lower())) for name in names}
    return SandboxSpec(
        _command(gate), env=env, read_only=request.files, timeout_seconds=SCRIPT_SECONDS, disk_mb=8, processes=16
    )


def _command(gate: GateSpec) -> list[str]:
    """`check_command`, split without a shell, or `config.script` in the mounted `/sandbox/skill`."""
    if gate.check_command:
        return shlex.split(gate.check_command)
    return ["python3", "-I", "-S", f"/sandbox/skill/{gate.config.get('script') or gate.check}"]


def _as_text(value: Any) -> str:
    text = "" if value is None else value if isinstance(value, str) else canonical_json(value)
    return text.replace("\0", "")[: rules.MAX_TEXT]


@dataclass(frozen=True)
class _ScriptOutput:
    """A script's stdout: `key: value` lines, a `modified_context` line, and the rest, which is its verdict."""

    verdict: str
    values: dict[str, str]
    changes: dict[str, Any] | None


def read_output(stdout: str) -> _ScriptOutput:
    """Parse a script's stdout. Raises ValueError if `modified_context` is not a JSON object, and for a repeated key: a
    value with a line break must not pose as another one (a customer whose name ends in `customer_id: …`)."""
    verdict: list[str] = []
    values: dict[str, str] = {}
    changes = None
    for line in stdout.splitlines():
        key, colon, value = (part.strip() for part in line.partition(":"))
        if not colon or not key.isidentifier():
            verdict.append(line)
        elif key in values:
            raise ValueError(f"{key} is repeated")
        elif key == "modified_context":
            changes = json.loads(value)
            if not isinstance(changes, dict):
                raise ValueError("modified_context is not an object")
        else:
            values[key] = value
    return _ScriptOutput("\n".join(verdict), values, changes)


def _judge_script(gate: GateSpec, outcome: SandboxResult) -> GateResult:
    if outcome.reason or outcome.exit_code is None:
        return _result(gate, GateAction.BLOCK, GateCode.SCRIPT_FAILED, f"The check failed: {outcome.reason}")
    try:
        output = read_output(outcome.stdout)
    except (ValueError, RecursionError):
        return _result(gate, GateAction.BLOCK, GateCode.SCRIPT_FAILED, "The check returned malformed output")
    result = _verdict(gate, output, outcome.exit_code)
    if not result.passed:
        return result
    subject = output.values.get("customer_id")
    return replace(
        result,
        modified_context=output.changes,
        subject=Subject(subject, output.values.get("customer_name", "")) if subject else None,
    )


def _verdict(gate: GateSpec, output: _ScriptOutput, exit_code: int) -> GateResult:
    """Decide by `check_expect`, else by the extracted value, else by the exit code.

    Value lines are not part of the output.
    """
    if gate.check_expect is not None:
        if rules.meets(gate.check_expect, output=output.verdict, exit_code=exit_code):
            return _result(gate, GateAction.CONTINUE, GateCode.PASSED)
        return _result(gate, GateAction.BLOCK, GateCode.CHECK_FAILED, "The check didn't pass")
    if exit_code != 0:
        return _result(gate, GateAction.BLOCK, GateCode.CHECK_FAILED, "The check didn't pass")
    if gate.extract:
        value = output.values.get(gate.extract)
        answer = predicates.judge(gate, value)
        return _result(gate, answer.action, answer.code, answer.reason, value=_stored_value(value))
    return _result(gate, GateAction.CONTINUE, GateCode.PASSED, value=output.verdict[:200])


def _stored_value(value: Any) -> str | float | None:
    """The part of the value that is stored with the result: a number, or a short text."""
    number = None if isinstance(value, str) else rules.as_number(value)
    return number if number is not None else value[:200] if isinstance(value, str) else None


def _result(gate: GateSpec, action: GateAction, code: GateCode, reason: str = "", **more: Any) -> GateResult:
    return GateResult(gate.name, gate.lane, action, code, reason, gate.on_block, **more)
