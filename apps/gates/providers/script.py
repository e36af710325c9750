"""A script of a skill, in the sandbox. Fails closed: one that cannot run, fails or prints malformed output blocks."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from apps.gates import predicates, rules
from apps.gates.claims import Claim, find_claim
from apps.gates.enums import GateAction, GateCode, GateProvider, GateType
from apps.gates.providers.base import Provider, Request, result_of, stored_value
from apps.gates.schemas import GateResult, GateSpec, Subject
from apps.gates.settings_checks import Problems, check_names
from kernel.canonical import canonical_json
from kernel.language import gettext, gettext_lazy
from kernel.stored_texts import stored_text
from sandbox import SandboxResult, SandboxSpec, SandboxUnavailable, run

SCRIPT_SECONDS = 30.0
# A script that checks identity needs a claim of both.
_CLAIM = frozenset({"CUSTOMER_NAME", "CUSTOMER_DOB"})
_ENVIRONMENT = re.compile(r"[A-Z][A-Z0-9_]{0,59}")
# Besides these, a script has settings of its skill: the records it reads, what it asks the visitor for.
_SETTINGS = frozenset({"skill", "script", "args_from_env", "records", "match", "ask"})


class Script(Provider):
    kind = GateProvider.SCRIPT
    label = gettext_lazy("A skill script")
    is_slow = True
    reads_files = True
    has_condition = True

    def problems(self, gate: GateSpec) -> Problems:
        yield from check_names(gate.config, _SETTINGS)
        script = gate.config.get("script") or gate.check
        if gate.check_command:
            try:
                shlex.split(gate.check_command)
            except ValueError:
                yield "check_command", gettext("a quotation mark is missing")
        elif not isinstance(script, str) or not script or PurePosixPath(script).is_absolute() or ".." in script:
            yield "config", gettext("enter which script of the skill to run")
        names = gate.config.get("args_from_env") or []
        if not isinstance(names, list) or not all(isinstance(n, str) and _ENVIRONMENT.fullmatch(n) for n in names):
            yield "config", gettext("args_from_env must be a list of names such as CUSTOMER_NAME")

    def evaluate(self, request: Request) -> GateResult:
        gate = request.gate
        claim = claim_for(gate, request.context)
        # Without a claim there is nothing to check; the level is withheld, and the message goes on.
        if claim is None and needs_claim(gate) and request.is_level_gate:
            return result_of(
                gate, GateAction.CONTINUE, GateCode.NO_CLAIM, stored_text("The visitor hasn't identified themselves")
            )
        try:
            outcome = run(_script_spec(request, {**request.context, **(claim.as_values() if claim else {})}))
        except SandboxUnavailable as refused:
            return result_of(gate, GateAction.BLOCK, GateCode.PROVIDER_FAILED, refused.message)
        return _judge_script(gate, outcome)


def needs_claim(gate: GateSpec) -> bool:
    return gate.type == GateType.CUSTOM_CHECK and bool(_CLAIM & set(gate.config.get("args_from_env") or ()))


def claim_for(gate: GateSpec, context: Mapping[str, Any]) -> Claim | None:
    """The identity that the visitor claims, if this gate needs one and the message states it."""
    if not needs_claim(gate):
        return None
    message, recent = str(context.get("message") or ""), context.get("recent") or ()
    return find_claim(message, recent, known=gate.name in (context.get("verified_gates") or ()))


def _script_spec(request: Request, values: Mapping[str, object]) -> SandboxSpec:
    gate = request.gate
    names: Sequence[str] = gate.config.get("args_from_env") or ()
    env = {name: _as_text(rules.lookup(values, name.lower())) for name in names}
    return SandboxSpec(
        _command(gate), env=env, read_only=request.files, timeout_seconds=SCRIPT_SECONDS, disk_mb=8, processes=16
    )


def _command(gate: GateSpec) -> list[str]:
    """`check_command`, split without a shell, or `config.script` in the mounted `/sandbox/skill`."""
    if gate.check_command:
        # Split once, here: no shell reads it, so that no value becomes a command (injection).
        return shlex.split(gate.check_command)
    return ["python3", "-I", "-S", f"/sandbox/skill/{gate.config.get('script') or gate.check}"]


def _as_text(value: object) -> str:
    text = "" if value is None else value if isinstance(value, str) else canonical_json(value)
    # A NUL ends an environment variable, and its size is limited.
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
        return result_of(
            gate,
            GateAction.BLOCK,
            GateCode.SCRIPT_FAILED,
            stored_text("The check failed: {reason}").format(reason=outcome.reason),
        )
    try:
        output = read_output(outcome.stdout)
    except (ValueError, RecursionError):
        return result_of(
            gate, GateAction.BLOCK, GateCode.SCRIPT_FAILED, stored_text("The check returned malformed output")
        )
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
            return result_of(gate, GateAction.CONTINUE, GateCode.PASSED)
        return result_of(gate, GateAction.BLOCK, GateCode.CHECK_FAILED, stored_text("The check didn't pass"))
    if exit_code != 0:
        return result_of(gate, GateAction.BLOCK, GateCode.CHECK_FAILED, stored_text("The check didn't pass"))
    if gate.extract:
        value = output.values.get(gate.extract)
        answer = predicates.judge(gate, value)
        return result_of(gate, answer.action, answer.code, answer.reason, value=stored_value(value))
    return result_of(gate, GateAction.CONTINUE, GateCode.PASSED, value=output.verdict[:200])
