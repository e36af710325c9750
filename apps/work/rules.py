"""Which way may a work item go, and in which order do children run? Decided from values."""

from __future__ import annotations

from apps.guard.enums import RefusalCode
from apps.work.enums import WorkItemStatus as Status
from apps.work.enums import WorkReason

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
