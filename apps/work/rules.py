"""Which way may a work item go, and in which order do children run? Decided from values."""

from __future__ import annotations

from collections.abc import Sequence

from apps.gates.enums import GateProvider, GateType
from apps.gates.schemas import GateSpec
from apps.guard.enums import RefusalCode
from apps.work.enums import WorkItemStatus as Status
from apps.work.enums import WorkReason
from apps.work.schemas import VerificationCheck

TRANSITIONS: dict[Status, frozenset[Status]] = {
    Status.PENDING: frozenset({Status.RUNNING, Status.BLOCKED, Status.PAUSED, Status.HEALTHY}),
    Status.RUNNING: frozenset(
        {Status.RUNNING, Status.DONE, Status.FAILED, Status.STUCK, Status.BLOCKED, Status.PAUSED}
    ),
    Status.HEALTHY: frozenset({Status.HEALTHY, Status.RUNNING, Status.FAILED, Status.PAUSED, Status.BLOCKED}),
    Status.PAUSED: frozenset({Status.PENDING, Status.RUNNING, Status.HEALTHY, Status.BLOCKED}),
    Status.DONE: frozenset(),
    Status.FAILED: frozenset(),
    Status.STUCK: frozenset(),
    Status.BLOCKED: frozenset(),
}
# What a plan that came out of a conversation may hold: enough for honest work, too little to keep a worker busy.
MAX_CALLS = 10
MAX_CHECKS = 5
MAX_CHECK_SECONDS = 60
_PLAIN_GATES = frozenset({GateType.NUMERIC_RANGE, GateType.STRING_MATCH, GateType.APPROVAL_ALWAYS})

FINAL = frozenset(status for status, onward in TRANSITIONS.items() if not onward)


def may_move(old: Status, new: Status) -> bool:
    return new in TRANSITIONS[old]


_STOPS: dict[RefusalCode, WorkReason] = {
    RefusalCode.HALTED: WorkReason.HALTED,
    RefusalCode.PAUSED: WorkReason.HALTED,
    RefusalCode.NOT_RUNNING: WorkReason.HALTED,
    RefusalCode.GATE_BLOCKED: WorkReason.GATE,
    RefusalCode.TOOL_NOT_GRANTED: WorkReason.GATE,
    RefusalCode.APPROVAL_MISSING: WorkReason.NOT_APPROVED,
    RefusalCode.EFFECT_UNCERTAIN: WorkReason.UNCERTAIN,
    RefusalCode.COST_CAP_REACHED: WorkReason.BUDGET,
    RefusalCode.BUDGET_TOKENS: WorkReason.BUDGET,
    RefusalCode.BUDGET_TOOL_CALLS: WorkReason.BUDGET,
    RefusalCode.BUDGET_WALL_CLOCK: WorkReason.BUDGET,
    RefusalCode.GLOBAL_DAILY: WorkReason.BUDGET,
    RefusalCode.GLOBAL_MONTHLY: WorkReason.BUDGET,
    RefusalCode.PRICE_UNKNOWN: WorkReason.BUDGET,
}


def stop_for(refusal: RefusalCode | None) -> WorkReason:
    """Why another attempt would meet the same wall; NONE when it might not."""
    return _STOPS.get(refusal, WorkReason.NONE) if refusal else WorkReason.NONE


def is_plain_check(check: VerificationCheck) -> bool:
    """A check that a model may add: offline, short, and without a pattern that our own process would have to search."""
    return not check.network and check.expect.regex is None and check.timeout <= MAX_CHECK_SECONDS


def is_plain_gate(gate: GateSpec) -> bool:
    """A gate that a model may add: decided from values at once, by comparison alone."""
    return gate.provider == GateProvider.PREDICATE and gate.type in _PLAIN_GATES


def excess(*, calls: int, checks: Sequence[VerificationCheck], gates: Sequence[GateSpec]) -> str:
    """What a proposed plan has too much of, as an error code; "" when nothing."""
    if calls > MAX_CALLS:
        return "plan_too_many_calls"
    if len(checks) > MAX_CHECKS or not all(is_plain_check(check) for check in checks):
        return "plan_check_not_allowed"
    return "" if all(is_plain_gate(gate) for gate in gates) else "plan_gate_not_allowed"
