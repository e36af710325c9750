"""What would a set of gates say to something that is already on record? Writes nothing.

Scripts run, on the records as they are today; models are asked by whoever brings one. Called by the dry run
(`apps.sessions.gate_backtest`), outside of any scope.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from apps.gates.allowance import Allowance, AskModel
from apps.gates.enums import GateAction, GateCode, GateProvider, GateTrigger
from apps.gates.schemas import GateReport, GateSpec
from apps.gates.services.runner import check_gates
from kernel.sandbox.spec import Mount

_LOOKED_AT = {
    GateTrigger.EVERY_USER_MESSAGE: "message",
    GateTrigger.EVERY_AGENT_RESPONSE: "response",
    GateTrigger.ON_TOOL_CALL: "tool_args",
}


@dataclass(frozen=True)
class Outcome:
    """What a set decides: the action, the code and name of the gate that decides (none for a plain pass), and whether
    the text or the arguments came out changed."""

    action: str
    code: str = GateCode.PASSED.value
    gate: str = ""
    rewritten: bool = False


def reads_recorded_input(gate: GateSpec) -> bool:
    """Whether what it looks at is kept: results of steps are not."""
    return gate.on in _LOOKED_AT


def evaluate(
    gates: Iterable[GateSpec],
    trigger: str,
    context: Mapping[str, Any],
    *,
    level_gates: Iterable[str] | None = None,
    files: Mapping[str, Mapping[str, Mount]] | None = None,
    ask: AskModel | None = None,
) -> Outcome:
    """What `check_gates` comes to; without `ask`, gates that ask a model are left out."""
    asked = [gate for gate in gates if ask is not None or gate.provider != GateProvider.LLM]
    allowed = Allowance(ask=ask)
    report = check_gates(asked, trigger, context, level_gates=level_gates, files=files, allowance=allowed)
    looked_at = _LOOKED_AT[GateTrigger(trigger)]
    rewritten = report.context.get(looked_at) != context.get(looked_at)
    return _outcome(report, rewritten=rewritten)


def _outcome(report: GateReport, *, rewritten: bool) -> Outcome:
    deciding = report.blocked or report.needs_approval
    if deciding is None:
        return Outcome(GateAction.CONTINUE.value, rewritten=rewritten)
    blocks = deciding.action == GateAction.BLOCK
    return Outcome(str(deciding.action), str(deciding.code), deciding.gate_name, rewritten=rewritten and not blocks)
