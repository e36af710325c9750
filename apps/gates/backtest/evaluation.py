"""Evaluate a set of gates over recorded input, without writing anything.

Scripts run on today's data; models are asked only if the caller passes one. Called by a dry run
(`runs`), outside of any scope.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from apps.gates.allowance import Allowance, AskModel
from apps.gates.enums import GateAction, GateCode, GateTrigger
from apps.gates.providers import PROVIDERS
from apps.gates.schemas import GateReport, GateSpec
from apps.gates.services.runner import check_gates
from sandbox.spec import Mount

_INPUT_KEYS = {
    GateTrigger.EVERY_USER_MESSAGE: "message",
    GateTrigger.EVERY_AGENT_RESPONSE: "response",
    GateTrigger.ON_TOOL_CALL: "tool_args",
}


@dataclass(frozen=True)
class Outcome:
    """The decision of a set of gates: the action, the code and name of the deciding gate (empty if all pass), and
    whether the text or arguments were rewritten."""

    action: str
    code: str = GateCode.PASSED.value
    gate: str = ""
    rewritten: bool = False


def reads_recorded_input(gate: GateSpec) -> bool:
    """Whether the gate's input is recorded; results of steps are not."""
    return gate.on in _INPUT_KEYS


def evaluate(
    gates: Iterable[GateSpec],
    trigger: str,
    context: Mapping[str, object],
    *,
    level_gates: Iterable[str] | None = None,
    files: Mapping[str, Mapping[str, Mount]] | None = None,
    ask: AskModel | None = None,
) -> Outcome:
    """The outcome of `check_gates`; without `ask`, gates that ask a model are skipped."""
    due = [gate for gate in gates if ask is not None or not PROVIDERS[gate.provider].asks_model]
    allowance = Allowance(ask=ask)
    report = check_gates(due, trigger, context, level_gates=level_gates, files=files, allowance=allowance)
    key = _INPUT_KEYS[GateTrigger(trigger)]
    rewritten = report.context.get(key) != context.get(key)
    return _outcome(report, rewritten=rewritten)


def _outcome(report: GateReport, *, rewritten: bool) -> Outcome:
    deciding = report.blocked or report.needs_approval
    if deciding is None:
        return Outcome(GateAction.CONTINUE.value, rewritten=rewritten)
    blocks = deciding.action == GateAction.BLOCK
    return Outcome(str(deciding.action), str(deciding.code), deciding.gate_name, rewritten=rewritten and not blocks)
