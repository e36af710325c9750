"""What follows when a gate blocks? Looks the escalation up and says what the visitor reads (spec 5.1.1). Pure.

Resolution: the active goal's map, then the built-in defaults, then `report`. Rephrasing is the output gates' own step.
"""

from __future__ import annotations

from collections.abc import Mapping

from apps.gates.enums import EscalationKind
from apps.gates.schemas import EscalationSpec, GateResult
from apps.sessions.state import Stop

POLITE = "I can't help with that. How else can I assist you?"
HANDING_ON = "I am passing you on to a colleague, who will answer here."
BUILT_IN: Mapping[str, EscalationSpec] = {
    "polite_redirect": EscalationSpec(action=EscalationKind.RESPOND, message=POLITE),
    "report": EscalationSpec(action=EscalationKind.REPORT),
}
_TO_PERSON = frozenset({EscalationKind.ESCALATE_HUMAN, EscalationKind.TRANSFER_TO_QUEUE})
_TO_FALLBACK = frozenset(
    {EscalationKind.SUPPRESS_AND_ESCALATE, EscalationKind.SUPPRESS_AND_REPHRASE, EscalationKind.RETRY}
)


def resolve(name: str, escalations: Mapping[str, EscalationSpec]) -> EscalationSpec:
    return escalations.get(name) or BUILT_IN.get(name) or BUILT_IN["report"]


def stop_for(result: GateResult, escalations: Mapping[str, EscalationSpec]) -> Stop:
    """How the turn ends after `result` blocked: what is said, and whether a person is asked for."""
    chosen = resolve(result.on_block, escalations)
    text, wants_person = chosen.message or "", False
    seen: set[str] = {result.on_block}
    while True:
        wants_person = wants_person or chosen.action in _TO_PERSON
        if chosen.action not in _TO_FALLBACK or not chosen.fallback or chosen.fallback in seen:
            break
        seen.add(chosen.fallback)
        chosen = resolve(chosen.fallback, escalations)
        text = text or chosen.message or ""
    return Stop(f"gate:{result.gate_name}", text or (HANDING_ON if wants_person else POLITE), wants_person)
