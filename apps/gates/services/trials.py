"""What would a set of gates say to something that is already on record? Decided from the text alone, writes nothing.

Scripts and models are not asked: a script reads today's records, a model costs money, and neither says the same twice.
Called by the dry run (`apps.sessions.rehearsal`), outside of any scope.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from apps.gates.enums import GateAction, GateCode, GateProvider, GateTrigger
from apps.gates.schemas import GateReport, GateSpec
from apps.gates.services.running import check_gates

TRIED = frozenset({GateProvider.PREDICATE, GateProvider.CUSTOM, GateProvider.GUARDRAILS_AI})
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


def can_be_tried(gate: GateSpec) -> bool:
    return gate.provider in TRIED and gate.on in _LOOKED_AT


def outcome_of(gates: Iterable[GateSpec], trigger: str, context: Mapping[str, Any]) -> Outcome:
    report = check_gates([gate for gate in gates if gate.provider in TRIED], trigger, context)
    looked_at = _LOOKED_AT[GateTrigger(trigger)]
    rewritten = report.context.get(looked_at) != context.get(looked_at)
    return _outcome(report, rewritten=rewritten)


def _outcome(report: GateReport, *, rewritten: bool) -> Outcome:
    deciding = report.blocked or report.needs_approval
    if deciding is None:
        return Outcome(GateAction.CONTINUE.value, rewritten=rewritten)
    blocks = deciding.action == GateAction.BLOCK
    return Outcome(str(deciding.action), str(deciding.code), deciding.gate_name, rewritten=rewritten and not blocks)
