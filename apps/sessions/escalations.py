"""What does the visitor read when a gate blocks, and is a person asked for? (spec 5.1.1) Pure.

Which escalation a name means is the gates room's rule; rephrasing is the output gates' own step.
"""

from __future__ import annotations

from collections.abc import Mapping

from apps.gates.enums import EscalationKind
from apps.gates.rules import escalation_steps
from apps.gates.schemas import EscalationSpec, GateResult
from apps.sessions.state import Stop

POLITE = "I can't help with that. How else can I assist you?"
HANDING_ON = "I am passing you on to a colleague, who will answer here."
_TO_PERSON = frozenset({EscalationKind.ESCALATE_HUMAN, EscalationKind.TRANSFER_TO_QUEUE})


def stop_for(result: GateResult, escalations: Mapping[str, EscalationSpec]) -> Stop:
    """How the turn ends after `result` blocked: the first words of the escalation or its fallbacks, else our own."""
    steps = escalation_steps(result.on_block, escalations)
    wants_person = any(step.action in _TO_PERSON for step in steps)
    said = next((step.message for step in steps if step.message), "")
    return Stop(f"gate:{result.gate_name}", said or (HANDING_ON if wants_person else POLITE), wants_person)
