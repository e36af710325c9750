"""Rules of tasks and sessions, decided from values alone: transitions, limits, retries, triggers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import ROUND_DOWN, Decimal
from typing import Any

from pydantic import BaseModel, ValidationError

from apps.autonomy.enums import (
    ContextState,
    PrecedentState,
    ProposalState,
    SessionStatus,
    SpawnRefusal,
    TriggerKind,
)
from apps.autonomy.schemas import (
    ChainSpec,
    CronSpec,
    EventSpec,
    GoalCheckSpec,
    IntervalSpec,
    ManualSpec,
    TaskLimits,
    WatchSpec,
)
from apps.guard.enums import Phase, RefusalCode, TerminalReason
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError

# Contract A2: a fixed order, without branches; no phase is skipped.
PHASES = (Phase.INTAKE, Phase.ANALYSIS, Phase.DRAFTING, Phase.ETHICS_REVIEW, Phase.DELIVERY)
MAX_DEPTH = 5
MAX_STEPS = 6
KNOWLEDGE = "knowledge_search"
WEB = "web_search"
MAX_CHILDREN = 3
# How long after its session's time is up a worker is taken for hung and ended.
GRACE_SECONDS = 10
_NANO = Decimal(10) ** -9
_LONGEST_CONTEXT_TEXT = 500
_COUNTED = ("calls", "tokens", "memory_writes")

TRANSITIONS: Mapping[SessionStatus, frozenset[SessionStatus]] = {
    SessionStatus.QUEUED: frozenset({SessionStatus.RUNNING, SessionStatus.CANCELLED, SessionStatus.FAILED}),
    SessionStatus.RUNNING: frozenset(
        {
            SessionStatus.COMPLETED,
            SessionStatus.HALTED,
            SessionStatus.FAILED,
            SessionStatus.CANCELLED,
            SessionStatus.AWAITING_APPROVAL,
        }
    ),
    SessionStatus.AWAITING_APPROVAL: frozenset({SessionStatus.QUEUED, SessionStatus.CANCELLED, SessionStatus.FAILED}),
    SessionStatus.COMPLETED: frozenset(),
    SessionStatus.HALTED: frozenset(),
    SessionStatus.FAILED: frozenset(),
    SessionStatus.CANCELLED: frozenset(),
}
PROPOSAL_TRANSITIONS: Mapping[ProposalState, frozenset[ProposalState]] = {
    ProposalState.PROPOSED: frozenset({ProposalState.KEPT, ProposalState.DISMISSED}),
    ProposalState.KEPT: frozenset({ProposalState.KEPT, ProposalState.DISMISSED}),
    ProposalState.DISMISSED: frozenset({ProposalState.KEPT}),
}
PRECEDENT_TRANSITIONS: Mapping[PrecedentState, frozenset[PrecedentState]] = {
    PrecedentState.OPEN: frozenset({PrecedentState.PROMOTED, PrecedentState.DISMISSED}),
    PrecedentState.PROMOTED: frozenset({PrecedentState.DISMISSED}),
    PrecedentState.DISMISSED: frozenset(),
}
CONTEXT_TRANSITIONS: Mapping[ContextState, frozenset[ContextState]] = {
    ContextState.PROPOSED: frozenset({ContextState.ACCEPTED, ContextState.REJECTED}),
    ContextState.ACCEPTED: frozenset({ContextState.REJECTED}),
    ContextState.REJECTED: frozenset({ContextState.ACCEPTED}),
}

SPECS: Mapping[TriggerKind, type[BaseModel]] = {
    TriggerKind.CRON: CronSpec,
    TriggerKind.INTERVAL: IntervalSpec,
    TriggerKind.EVENT: EventSpec,
    TriggerKind.WATCH: WatchSpec,
    TriggerKind.CHAIN: ChainSpec,
    TriggerKind.GOAL_CHECK: GoalCheckSpec,
    TriggerKind.MANUAL: ManualSpec,
}

# How a session ends after a refusal of the guard. Others fail one call only (contract autonomy A3, C).
_ENDINGS: Mapping[RefusalCode, tuple[SessionStatus, TerminalReason]] = {
    RefusalCode.HALTED: (SessionStatus.HALTED, TerminalReason.EXTERNAL_HALT),
    RefusalCode.PAUSED: (SessionStatus.HALTED, TerminalReason.EXTERNAL_HALT),
    RefusalCode.NOT_RUNNING: (SessionStatus.HALTED, TerminalReason.EXTERNAL_HALT),
    RefusalCode.TOOL_NOT_GRANTED: (SessionStatus.FAILED, TerminalReason.TOOL_NOT_GRANTED),
    RefusalCode.COST_CAP_REACHED: (SessionStatus.HALTED, TerminalReason.COST_CAP_REACHED),
    RefusalCode.BUDGET_TOKENS: (SessionStatus.HALTED, TerminalReason.BUDGET_TOKENS),
    RefusalCode.BUDGET_TOOL_CALLS: (SessionStatus.HALTED, TerminalReason.BUDGET_TOOL_CALLS),
    RefusalCode.BUDGET_WALL_CLOCK: (SessionStatus.HALTED, TerminalReason.BUDGET_WALL_CLOCK),
    RefusalCode.GLOBAL_DAILY: (SessionStatus.HALTED, TerminalReason.GLOBAL_DAILY),
    RefusalCode.GLOBAL_MONTHLY: (SessionStatus.HALTED, TerminalReason.GLOBAL_MONTHLY),
    RefusalCode.PRICE_UNKNOWN: (SessionStatus.HALTED, TerminalReason.COST_CAP_REACHED),
    RefusalCode.APPROVAL_MISSING: (SessionStatus.FAILED, TerminalReason.APPROVAL_MISSING),
    RefusalCode.APPROVAL_VOID: (SessionStatus.FAILED, TerminalReason.APPROVAL_MISSING),
    RefusalCode.APPROVAL_SPENT: (SessionStatus.FAILED, TerminalReason.APPROVAL_MISSING),
}


def spawn_refusal(
    *, enabled: bool, deleted: bool, quarantined: bool, has_owner: bool, opted_in: bool
) -> SpawnRefusal | None:
    """The first reason why no session of a task may start, or None."""
    refusals = {
        SpawnRefusal.AUTONOMY_OFF: not enabled,
        SpawnRefusal.TASK_DELETED: deleted,
        SpawnRefusal.QUARANTINED: quarantined,
        SpawnRefusal.NO_OWNER: not has_owner,
        SpawnRefusal.NOT_OPTED_IN: not opted_in,
    }
    return next((code for code, applies in refusals.items() if applies), None)


def ending_for(code: RefusalCode) -> tuple[SessionStatus, TerminalReason] | None:
    """How a refused call ends its session; None when the session continues without the call."""
    return _ENDINGS.get(code)


def smallest_limits(*limits: TaskLimits) -> TaskLimits:
    """Field by field the smallest limit that is set; 0 is set (contract autonomy C, D: which cap)."""
    names = TaskLimits.model_fields
    given = {name: [value for caps in limits if (value := getattr(caps, name)) is not None] for name in names}
    return TaskLimits(**{name: min(values, default=None) for name, values in given.items()})


def limits_left(limits: TaskLimits, *, cost: Decimal, calls: int, tokens: int, seconds: float) -> TaskLimits:
    """What is left of a session's limits after this use, never below 0. Memory writes are counted elsewhere."""

    def left(cap: int | None, used: int) -> int | None:
        return None if cap is None else max(cap - used, 0)

    return TaskLimits(
        cost_usd=None if limits.cost_usd is None else max(limits.cost_usd - cost, Decimal(0)),
        calls=left(limits.calls, calls),
        tokens=left(limits.tokens, tokens),
        wall_seconds=left(limits.wall_seconds, int(seconds)),
        memory_writes=limits.memory_writes,
    )


def divide_limits(left: TaskLimits, parts: int) -> tuple[TaskLimits, TaskLimits]:
    """An equal share of what is left, rounded down, and the sum of the shares. Time is shared, not divided."""
    cost = None if left.cost_usd is None else (left.cost_usd / parts).quantize(_NANO, rounding=ROUND_DOWN)
    share = _counted(left, cost, lambda value: value // parts)
    return share, _counted(share, None if cost is None else cost * parts, lambda value: value * parts)


def subtract_limits(limits: TaskLimits, *taken: TaskLimits) -> TaskLimits:
    """The limits less what was taken, never below 0. Time stays as it is."""
    for amount in taken:
        cost = None if limits.cost_usd is None else max(limits.cost_usd - (amount.cost_usd or 0), Decimal(0))
        counts = {
            name: None if (most := getattr(limits, name)) is None else max(most - (getattr(amount, name) or 0), 0)
            for name in _COUNTED
        }
        limits = limits.model_copy(update={"cost_usd": cost, **counts})
    return limits


def _counted(limits: TaskLimits, cost: Decimal | None, change: Callable[[int], int]) -> TaskLimits:
    counts = {name: None if (value := getattr(limits, name)) is None else change(value) for name in _COUNTED}
    return limits.model_copy(update={"cost_usd": cost, **counts})


def may_delegate_to(task: Any, delegate: Any) -> bool:
    """Whether `delegate` is another prompt task of the same deployment and member that does not delegate itself."""
    same = (task.deployment_id, task.owner_id) == (delegate.deployment_id, delegate.owner_id)
    final = not (delegate.playbook or delegate.escalates_to_id or delegate.delegates_to)
    return same and final and task.pk != delegate.pk


def is_spent(limits: TaskLimits) -> bool:
    """Whether a session with these limits could not make a single call."""
    return 0 in (limits.calls, limits.wall_seconds)


def retry_seconds(attempt: int, *, base: float, most: float, chance: float) -> float:
    """Seconds to wait before the attempt after `attempt`: doubled each time and capped at `most`.

    The second half of the wait is scaled by `chance` (0 to 1), so that what failed together is not retried together.
    """
    whole = min(base * 2.0 ** max(attempt - 1, 0), most)
    return whole * (0.5 + chance / 2)


def parse_spec(kind: TriggerKind, spec: Mapping[str, object]) -> BaseModel:
    """The validated specification of a trigger of this kind. Raises `SilasError`: trigger_kind, trigger_spec."""
    shape = SPECS.get(kind)
    if shape is None:
        raise SilasError(ErrorCode.TRIGGER_KIND)
    try:
        return shape.model_validate(spec)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or "spec"
        raise SilasError(ErrorCode.TRIGGER_SPEC, f"{field}: {first['msg']}") from None


def topic_for(spec: BaseModel) -> str:
    """The key by which a trigger is found when something happens; "" for schedules and manual triggers."""
    match spec:
        case EventSpec(topic=topic):
            return f"event:{topic.value}"
        case WatchSpec(collection=collection):
            return f"watch:{collection}"
        case ChainSpec(after=task):
            return f"chain:{task}"
        case GoalCheckSpec(goal=goal, healthy=healthy):
            return f"goal-all:{goal}" if healthy else f"goal:{goal}"
    return ""


def context_text(pattern_kind: str, summary: str) -> str:
    """The sentence about a pattern that a bot is told, on one line.

    Worded here from kind and summary, so that no session words an instruction (contract autonomy A8).
    """
    return f"Seen before ({pattern_kind.replace('_', ' ')}): {' '.join(summary.split())}"[:_LONGEST_CONTEXT_TEXT]


def append_line(text: str, line: str) -> str:
    """The text with the line below it; no blank line before the first."""
    return f"{text}\n{line}" if text else line
