"""May this call happen, now, at this cost? Decided from values alone: the brakes R5, R6, R4, grants, caps and windows.

The order R5 → R6 → approval → R4 belongs to the caller (contract autonomy A3, C); None says "nothing against it".
Money: projected above the cap refuses, equal passes. Counts: the N-th passes, the next refuses. 0 is a real cap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import TypeVar
from zoneinfo import ZoneInfo

from apps.guard.enums import HaltState, Intent, Origin, Pause, Period, Phase, RefusalCode, RunStatus
from apps.guard.schemas import BudgetFacts, Limits, RunFacts

N = TypeVar("N", int, Decimal)

# Contract autonomy A2 for the seven first intents; chat scopes and work attempts may retrieve, run skills and converse.
PHASE_GRANTS: Mapping[Phase, frozenset[Intent]] = {
    Phase.INTAKE: frozenset({Intent.RETRIEVE_CHUNKS}),
    Phase.ANALYSIS: frozenset(
        {Intent.RETRIEVE_CHUNKS, Intent.RUN_SKILL, Intent.RUN_PLAYBOOK, Intent.PROPOSE_PRECEDENT}
    ),
    Phase.DRAFTING: frozenset({Intent.RUN_SKILL, Intent.PROPOSE_PRECEDENT, Intent.PROPOSE_MEMORY, Intent.EMIT_FINDING}),
    Phase.ETHICS_REVIEW: frozenset({Intent.EMIT_FINDING}),
    Phase.DELIVERY: frozenset({Intent.NOTIFY}),
    Phase.INTERACTIVE: frozenset({Intent.RETRIEVE_CHUNKS, Intent.RUN_SKILL, Intent.CONVERSE}),
    Phase.EXECUTION: frozenset({Intent.RETRIEVE_CHUNKS, Intent.RUN_SKILL, Intent.CONVERSE}),
}

# A model run is not a tool that a model could name: the phase alone grants it. Its caller makes it itself.
MODEL_RUNS = frozenset({Intent.CONVERSE})

HALT_TRANSITIONS: Mapping[HaltState, frozenset[HaltState]] = {
    HaltState.RUNNING: frozenset({HaltState.PAUSED, HaltState.HALT_REQUESTED, HaltState.HALTED}),
    HaltState.PAUSED: frozenset({HaltState.RUNNING, HaltState.HALT_REQUESTED, HaltState.HALTED}),
    HaltState.HALT_REQUESTED: frozenset({HaltState.HALTED}),
    HaltState.HALTED: frozenset(),
}


def r5(facts: RunFacts) -> RefusalCode | None:
    """Anything that is not running stops, whoever set it; then the lease, then an administrator's pause."""
    if facts.halt_state in (HaltState.HALT_REQUESTED, HaltState.HALTED):
        return RefusalCode.HALTED
    if facts.status != RunStatus.RUNNING:
        return RefusalCode.NOT_RUNNING
    if facts.halt_state != HaltState.RUNNING:
        return RefusalCode.PAUSED
    if not facts.lease_held:
        return RefusalCode.LEASE_LOST
    unattended = facts.origin == Origin.BACKGROUND
    if Pause.ALL in facts.pauses or (unattended and Pause.NON_CRITICAL in facts.pauses):
        return RefusalCode.PAUSED
    return None


def r6(
    facts: RunFacts, *, intent: Intent, tool: str, access: frozenset[str], access_until: datetime | None = None
) -> RefusalCode | None:
    """Phase grant ∩ allow, less deny, ∩ access level while it lasts. `allow` None narrows nothing, an empty one allows
    nothing. A level that ends while a turn runs allows nothing from then on, however long the model takes."""
    if intent not in PHASE_GRANTS[Phase(facts.phase)]:
        return RefusalCode.TOOL_NOT_GRANTED
    if intent in MODEL_RUNS:
        return None
    allowed = facts.allow is None or tool in facts.allow
    expired = access_until is not None and facts.now >= access_until
    if not allowed or tool in facts.deny or tool not in access or expired:
        return RefusalCode.TOOL_NOT_GRANTED
    return None


def approval(facts: RunFacts, digest: str) -> RefusalCode | None:
    """The run carries a yes that names exactly this call and has not run out."""
    given = facts.approval
    if given is None or digest not in given.calls:
        return RefusalCode.APPROVAL_MISSING
    if given.expires_at is not None and facts.now >= given.expires_at:
        return RefusalCode.APPROVAL_MISSING
    return None


def r4_run(facts: RunFacts, estimate: Decimal | None) -> RefusalCode | None:
    """The run's own frozen limits; an estimate of None is a price that nobody knows."""
    limits = facts.limits
    if estimate is None:
        return RefusalCode.PRICE_UNKNOWN
    if limits.cost_usd is not None and facts.committed + estimate > limits.cost_usd:
        return RefusalCode.COST_CAP_REACHED
    if limits.tokens is not None and facts.tokens >= limits.tokens:
        return RefusalCode.BUDGET_TOKENS
    if limits.calls is not None and facts.calls + 1 > limits.calls:
        return RefusalCode.BUDGET_TOOL_CALLS
    if limits.wall_seconds is not None and facts.seconds > limits.wall_seconds:
        return RefusalCode.BUDGET_WALL_CLOCK
    return None


def r4_budgets(budgets: Iterable[BudgetFacts], estimate: Decimal) -> RefusalCode | None:
    """Every budget of tenant and deployment; the day's is named before the month's."""
    breached = {budget.period for budget in budgets if budget.committed + estimate > budget.limit}
    if Period.DAY in breached:
        return RefusalCode.GLOBAL_DAILY
    return RefusalCode.GLOBAL_MONTHLY if breached else None


def ends_run(origin: str) -> bool:
    """A reached limit ends a run that works alone; a conversation goes on with what costs nothing (contract D)."""
    return origin != Origin.CHAT


def smallest_cap(*caps: N | None) -> N | None:
    """The smallest cap that is set; 0 is set."""
    return min((cap for cap in caps if cap is not None), default=None)


def tightest(*limits: Limits) -> Limits:
    """Field by field the smallest cap of all that apply: session, task, trigger, member, approval… (contract D)."""
    return Limits(
        cost_usd=smallest_cap(*(each.cost_usd for each in limits)),
        calls=smallest_cap(*(each.calls for each in limits)),
        tokens=smallest_cap(*(each.tokens for each in limits)),
        wall_seconds=smallest_cap(*(each.wall_seconds for each in limits)),
    )


def day_in(zone: str, moment: datetime) -> date:
    """The tenant's calendar day at `moment`."""
    return moment.astimezone(ZoneInfo(zone)).date()


def window_start(period: str, day: date) -> date:
    return day.replace(day=1) if period == Period.MONTH else day


def plain(amount: Decimal) -> str:
    """An amount as people write it: every digit that counts, no exponent, no trailing zeros."""
    return f"{amount.normalize():f}"
