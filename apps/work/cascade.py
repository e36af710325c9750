"""Decide what follows a failed attempt: retry → consult the planner → re-plan → escalate to a person (spec 19.0,
19.5.3).

Each step is taken only when the one before is used up. Decided from values alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from apps.guard.schemas import call_digest
from llm.calls import PlannedCall

CONSULT_PLANNER = "consult_planner"
# The executor retries its first failures without the planner (spec 5.2.1 e).
CONSULT_FROM_ATTEMPT = 3
MAX_DEPTH = 2


class Step(StrEnum):
    RETRY = "retry"
    CONSULT = "consult"
    REPLAN = "replan"
    ESCALATE = "escalate"


def next_step(*, attempts: int, exhausted: bool, on_stuck: str, planner_may_help: bool, depth: int) -> Step:
    """`exhausted`: no attempts or budget are left. `planner_may_help`: the plan's own budget still pays for a question.
    `depth`: how many plans were tried before this one."""
    asks = on_stuck == CONSULT_PLANNER and planner_may_help
    if not exhausted:
        return Step.CONSULT if asks and attempts >= CONSULT_FROM_ATTEMPT else Step.RETRY
    return Step.REPLAN if asks and depth < MAX_DEPTH else Step.ESCALATE


def strategy(calls: Sequence[PlannedCall]) -> tuple[str, ...]:
    """Return what a plan would do: its calls, in order. Another title or prose does not make another strategy."""
    return tuple(call_digest(call.tool, call.args) for call in calls)


def is_different(calls: Sequence[PlannedCall], tried: Sequence[Sequence[PlannedCall]]) -> bool:
    """Whether none of the plans that were tried made exactly these calls in this order."""
    # A plan without calls does nothing and would count as another strategy.
    return bool(calls) and all(strategy(calls) != strategy(earlier) for earlier in tried)
