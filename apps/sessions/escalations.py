"""Decide what follows a gate's block: the visitor's text, who is asked, what is tried again (spec 5.1.1).

Which escalation a name means is the gates room's rule. `follow` is pure and always ends: each escalation is retried as
often as its author wrote, all together at most `MAX_TRIES` times, and a chain of fallbacks ends in a text for the
visitor. The closing carries out what a `Stop` asks for; the gate steps run again for an `Again`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from apps.audit.enums import AuditEvent
from apps.gates.enums import EscalationKind, GateAction, GateCode, GateLane
from apps.gates.rules import escalation_chain, escalation_for
from apps.gates.schemas import EscalationSpec, GateResult
from apps.sessions.state import Fix, Stop, TurnState
from kernel.language import gettext_lazy

POLITE = gettext_lazy("I can't help with that. How else can I assist you?")
HANDING_ON = gettext_lazy("I'm connecting you with a colleague, who will reply here.")
PASSED_ON = gettext_lazy("I've asked a colleague to look into this. You'll get the answer here.")
SAY_OTHERWISE = "Say it differently."
# The step that was blocked may run so often again; a gate that objects to everything must not run for ever.
MAX_TRIES = 6
REPHRASES = frozenset({EscalationKind.SUPPRESS_AND_REPHRASE, EscalationKind.RETRY})
RETRIES = frozenset({EscalationKind.RETRY})
NO_REPEATS: frozenset[EscalationKind] = frozenset()
_REPEATS = REPHRASES


@dataclass(frozen=True)
class Again:
    """The blocked step runs once more under this escalation; `instruction` "" asks for the very same."""

    name: str
    instruction: str = ""


def after_block(
    state: TurnState, problem: GateResult, tried: Counter[str], *, repeats: frozenset[EscalationKind]
) -> Again | Stop:
    """`follow` for this turn, counted and written down."""
    name, known = problem.on_block, state.policy.escalations
    chosen = follow(problem, known, tried=tried, repeats=repeats)
    if not tried and not escalation_for(name, known)[1]:
        state.audit.append((AuditEvent.ESCALATION_UNKNOWN, {"gate": problem.gate_name}))
    action = escalation_for(chosen.name if isinstance(chosen, Again) else name, known)[0].action
    what = {"gate": problem.gate_name, "code": str(problem.code), "action": str(action)}
    if isinstance(chosen, Again):
        tried[chosen.name] += 1
        what |= {"again": str(tried[chosen.name])}
    state.audit.append((AuditEvent.GATE_ESCALATED, what))
    return chosen


def after_refusal(state: TurnState) -> Stop | None:
    """What the gate that refused a tool or a plan leads to, beyond words: None when its no is all there is to it."""
    gate = next((gate for gate in state.policy.gates if gate.name == state.refused_by), None)
    if gate is None:
        return None
    problem = GateResult(gate.name, GateLane.POLICY, GateAction.BLOCK, GateCode.NOT_ALLOWED, on_block=gate.on_block)
    chosen = after_block(state, problem, Counter(), repeats=frozenset())
    return chosen if isinstance(chosen, Stop) else None


def follow(
    problem: GateResult,
    escalations: Mapping[str, EscalationSpec],
    *,
    tried: Mapping[str, int] | None = None,
    repeats: frozenset[EscalationKind] = frozenset(),
) -> Again | Stop:
    """What comes next after `problem`. `tried`: how often each escalation has asked again in this step; `repeats`: the
    actions that can ask again there, which for any other is the same as having failed."""
    tried = tried or {}
    course = list(escalation_chain(problem.on_block, escalations))
    while course and course[0][1].action in _REPEATS:
        name, spec = course.pop(0)
        may = spec.action in repeats and sum(tried.values()) < MAX_TRIES
        if may and tried.get(name, 0) < spec.max_retries:
            rewords = spec.action == EscalationKind.SUPPRESS_AND_REPHRASE
            return Again(name, spec.instruction or SAY_OTHERWISE if rewords else "")
    return _end(problem, [spec for _, spec in course])


def stop_for(problem: GateResult, escalations: Mapping[str, EscalationSpec]) -> Stop:
    """How the turn ends after `problem`, when nothing is tried again."""
    chosen = follow(problem, escalations)
    assert isinstance(chosen, Stop)
    return chosen


def _end(problem: GateResult, course: Sequence[EscalationSpec]) -> Stop:
    """Return the first escalation that is left; without one, a report."""
    reason = f"gate:{problem.gate_name}"
    if not course:
        return Stop(reason, POLITE, report=True)
    spec, rest = course[0], course[1:]
    said = (spec.message or "").strip()
    match spec.action:
        case EscalationKind.RESPOND:
            return Stop(reason, said or POLITE)
        case EscalationKind.ESCALATE_HUMAN | EscalationKind.TRANSFER_TO_QUEUE:
            return Stop(reason, said or HANDING_ON, wants_person=True, queue=(spec.queue or "").strip())
        case EscalationKind.SUPPRESS_AND_ESCALATE:
            then = _end(problem, rest) if rest else Stop(reason, HANDING_ON, wants_person=True)
            return replace(then, text=said or then.text)
        case EscalationKind.SPAWN_TASK:
            about = {"gate": problem.gate_name, "code": str(problem.code)}
            fix = Fix(spec.instruction or "", about)
            return Stop(reason, said or PASSED_ON, fix=fix, otherwise=_end(problem, rest))
        case EscalationKind.REPORT:
            return Stop(reason, said or POLITE, report=True)
        case _:  # a repeat behind an end: it has nothing to repeat
            return _end(problem, rest)
