"""Transitions of work items, the order of dependent tasks, and limits. Decided from values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from apps.guard.enums import RefusalCode
from apps.work.enums import WorkItemStatus as Status
from apps.work.enums import WorkItemType as Kind
from apps.work.enums import WorkReason
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError

_TASK: dict[Status, frozenset[Status]] = {
    Status.PENDING: frozenset({Status.RUNNING, Status.BLOCKED, Status.PAUSED, Status.FAILED}),
    Status.RUNNING: frozenset(
        {Status.RUNNING, Status.DONE, Status.FAILED, Status.STUCK, Status.BLOCKED, Status.PAUSED}
    ),
    Status.HEALTHY: frozenset(),
    Status.PAUSED: frozenset({Status.PENDING, Status.RUNNING, Status.FAILED, Status.STUCK, Status.BLOCKED}),
    Status.DONE: frozenset(),
    Status.FAILED: frozenset(),
    Status.STUCK: frozenset(),
    Status.BLOCKED: frozenset(),
}
# A goal is never done: each cycle makes it healthy or failed, it pauses without budget, and blocked is final.
_GOAL: dict[Status, frozenset[Status]] = {status: frozenset() for status in Status} | {
    Status.PENDING: frozenset({Status.HEALTHY, Status.FAILED, Status.PAUSED, Status.BLOCKED}),
    Status.HEALTHY: frozenset({Status.HEALTHY, Status.FAILED, Status.PAUSED, Status.BLOCKED}),
    Status.FAILED: frozenset({Status.HEALTHY, Status.FAILED, Status.PAUSED, Status.BLOCKED}),
    Status.PAUSED: frozenset({Status.HEALTHY, Status.FAILED, Status.BLOCKED}),
}
# A trigger enforces the same table (`sql.transitions`).
TRANSITIONS: dict[Kind, dict[Status, frozenset[Status]]] = {
    Kind.TASK: _TASK,
    Kind.PROJECT: _TASK,
    Kind.GOAL: _GOAL,
}
# Limits on what conversations may start, so that they cannot keep workers or approvers busy.
MAX_CALLS, MAX_TASKS = 10, 20
MAX_WAITING = 10

# Final states of tasks and projects.
FINAL = frozenset({Status.DONE, Status.FAILED, Status.STUCK, Status.BLOCKED})


def is_cancellable(kind: Kind, status: Status) -> bool:
    """True for a task or project that has not ended; a goal is changed instead."""
    return kind != Kind.GOAL and status not in FINAL


def is_resumable(kind: Kind, status: Status) -> bool:
    """True for a goal that is parked because its budget is used up."""
    return kind == Kind.GOAL and status == Status.PAUSED


def may_move(kind: Kind, old: Status, new: Status) -> bool:
    return new in TRANSITIONS[kind][old]


def dependency_order(depends_on: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Sort the names so that each follows its dependencies, otherwise in the given order (spec 5.2.2 step 1).

    Raises `SilasError`: plan_dependency_missing, plan_dependency_cycle (which names the cycle).
    """
    for name, before in depends_on.items():
        unknown = next((dependency for dependency in before if dependency not in depends_on), None)
        if unknown is not None:
            message = f"The task {name} depends on {unknown}, which is not in the project."
            raise SilasError(ErrorCode.PLAN_DEPENDENCY_MISSING, message, extra={"task": name, "missing": unknown})
    try:
        return tuple(_topological_order(depends_on))
    except CycleError as error:
        circle = " → ".join(error.args[1])
        message = f"The tasks depend on each other: {circle}."
        raise SilasError(ErrorCode.PLAN_DEPENDENCY_CYCLE, message, extra={"cycle": error.args[1]}) from None


def _topological_order(depends_on: Mapping[str, Sequence[str]]) -> Iterator[str]:
    places, waiting = list(depends_on), TopologicalSorter(depends_on)
    waiting.prepare()
    while waiting.is_active():
        # Of tasks that are ready together, the plan's own order decides.
        for name in sorted(waiting.get_ready(), key=places.index):
            yield name
            waiting.done(name)


_STOPS: dict[RefusalCode, WorkReason] = {
    RefusalCode.HALTED: WorkReason.HALTED,
    RefusalCode.PAUSED: WorkReason.HALTED,
    RefusalCode.NOT_RUNNING: WorkReason.HALTED,
    RefusalCode.GATE_BLOCKED: WorkReason.GATE,
    RefusalCode.SAFETY_BLOCKED: WorkReason.GATE,
    RefusalCode.TOOL_NOT_GRANTED: WorkReason.GATE,
    RefusalCode.APPROVAL_MISSING: WorkReason.NOT_APPROVED,
    RefusalCode.APPROVAL_VOID: WorkReason.NOT_APPROVED,
    RefusalCode.CONTENT_MARKED: WorkReason.NOT_APPROVED,
    RefusalCode.EFFECT_UNCERTAIN: WorkReason.UNCERTAIN,
    RefusalCode.COST_CAP_REACHED: WorkReason.BUDGET,
    RefusalCode.BUDGET_TOKENS: WorkReason.BUDGET,
    RefusalCode.BUDGET_TOOL_CALLS: WorkReason.BUDGET,
    RefusalCode.BUDGET_WALL_CLOCK: WorkReason.BUDGET,
    RefusalCode.GLOBAL_DAILY: WorkReason.BUDGET,
    RefusalCode.GLOBAL_MONTHLY: WorkReason.BUDGET,
    RefusalCode.PRICE_UNKNOWN: WorkReason.BUDGET,
}


def stop_reason_for(refusal: RefusalCode | None) -> WorkReason:
    """Return why another attempt would be refused in the same way; NONE when it might succeed."""
    return _STOPS.get(refusal, WorkReason.NONE) if refusal else WorkReason.NONE


def domain_of(subject: str) -> str | None:
    """Return the customer reference that an approval binds."""
    return f"business:customer/{subject}" if subject else None
