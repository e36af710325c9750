"""Decide from values whether a call may happen: the brakes R5, R6 and R4, approval, caps and budget windows.

A check returns why it refuses, or None. The caller runs R5 → R6 → approval → R4 in this order (contract autonomy A3,
C). An amount above the cap is refused, an equal one passes. Of counts the N-th passes and the next is refused. 0 is a
cap."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

from apps.guard.enums import HaltState, Holder, Intent, OnLimit, Origin, Pause, Period, Phase, RefusalCode, RunStatus
from apps.guard.schemas import BudgetFacts, RunFacts
from kernel.timezones import get_timezone

# Intents that reach an outside tool; an unattended run may have them in analysis only (contract autonomy A2).
OUTSIDE_INTENTS = frozenset({Intent.CALL_MCP_TOOL, Intent.WEB_SEARCH})
# Contract autonomy A2 for the first seven intents, and for `plan`; unattended runs ask a model in analysis only. Chat
# scopes and work attempts may retrieve, run skills, call outside tools and converse, and only work has files to read.
PHASE_GRANTS: Mapping[Phase, frozenset[Intent]] = {
    Phase.INTAKE: frozenset({Intent.RETRIEVE_CHUNKS}),
    Phase.ANALYSIS: frozenset(
        {
            Intent.RETRIEVE_CHUNKS,
            Intent.RUN_SKILL,
            Intent.RUN_PLAYBOOK,
            Intent.PROPOSE_PRECEDENT,
            Intent.PLAN,
            Intent.CONVERSE,
        }
    )
    | OUTSIDE_INTENTS,
    Phase.DRAFTING: frozenset(
        {
            Intent.RUN_SKILL,
            Intent.PROPOSE_PRECEDENT,
            Intent.PROPOSE_MEMORY,
            Intent.EMIT_FINDING,
            Intent.EMIT_ARTIFACT,
        }
    ),
    Phase.ETHICS_REVIEW: frozenset({Intent.EMIT_FINDING}),
    Phase.DELIVERY: frozenset({Intent.NOTIFY}),
    Phase.INTERACTIVE: frozenset({Intent.RETRIEVE_CHUNKS, Intent.RUN_SKILL, Intent.CONVERSE}) | OUTSIDE_INTENTS,
    Phase.EXECUTION: frozenset(
        {Intent.RETRIEVE_CHUNKS, Intent.RUN_SKILL, Intent.CONVERSE, Intent.READ_FILE, Intent.RUN_CONNECTION}
    )
    | OUTSIDE_INTENTS,
}

# Percent of a limit at which staff are alerted, once each in a window; the last is the limit itself.
LIMIT = 100
THRESHOLDS = (50, 80, 90, LIMIT)
NEARLY_ALL = 90
ENOUGH_RUNS = 5
# Decimal places of an amount's column, and its largest amount.
DIGITS = 9
MAX_USD = Decimal(10) ** DIGITS
_SOFTENED = frozenset({Holder.TENANT, Holder.DEPLOYMENT})

# A model run is not a tool that a model could name, so the phase alone grants it. Its caller makes it itself.
MODEL_RUNS = frozenset({Intent.CONVERSE, Intent.PLAN})

HALT_TRANSITIONS: Mapping[HaltState, frozenset[HaltState]] = {
    HaltState.RUNNING: frozenset({HaltState.PAUSED, HaltState.HALT_REQUESTED, HaltState.HALTED}),
    HaltState.PAUSED: frozenset({HaltState.RUNNING, HaltState.HALT_REQUESTED, HaltState.HALTED}),
    HaltState.HALT_REQUESTED: frozenset({HaltState.HALTED}),
    HaltState.HALTED: frozenset(),
}


def check_running(facts: RunFacts) -> RefusalCode | None:
    """R5: refuse a run that is halted, over or paused, that lost its lease, or that an administrator's pause stops; an
    unattended run also because of a reached limit."""
    if facts.halt_state in (HaltState.HALT_REQUESTED, HaltState.HALTED):
        return RefusalCode.HALTED
    if facts.status != RunStatus.RUNNING:
        return RefusalCode.NOT_RUNNING
    if facts.halt_state != HaltState.RUNNING:
        return RefusalCode.PAUSED
    if not facts.lease_held:
        return RefusalCode.LEASE_LOST
    unattended = facts.origin == Origin.BACKGROUND
    if is_paused(facts.pauses, critical=facts.critical or not unattended):
        return RefusalCode.PAUSED
    if facts.limit_paused and unattended and limit_stops(facts.on_limit, critical=facts.critical):
        return RefusalCode.GLOBAL_DAILY if facts.limit_paused == Period.DAY else RefusalCode.GLOBAL_MONTHLY
    return None


def is_paused(pauses: Collection[str], *, critical: bool) -> bool:
    """True if one of an administrator's pauses stops such a run."""
    return Pause.ALL in pauses or (Pause.NON_CRITICAL in pauses and not critical)


def limit_stops(on_limit: str, *, critical: bool) -> bool:
    """True if a reached limit of the tenant or a deployment stops such a run, by its setting (contract autonomy B4)."""
    match OnLimit(on_limit):
        case OnLimit.PAUSE_ALL:
            return True
        case OnLimit.PAUSE_NON_CRITICAL:
            return not critical
        case OnLimit.ALERT_ONLY:
            return False


def check_grant(
    facts: RunFacts, *, intent: Intent, tool: str, access: frozenset[str], access_until: datetime | None = None
) -> RefusalCode | None:
    """R6: phase grant ∩ allow less deny ∩ access level. `allow` None allows all, an empty set nothing. A level that
    expires while a turn runs allows nothing from then on, however long the model takes."""
    if intent not in PHASE_GRANTS[Phase(facts.phase)]:
        return RefusalCode.TOOL_NOT_GRANTED
    if intent in MODEL_RUNS:
        return None
    allowed = facts.allow is None or tool in facts.allow
    expired = access_until is not None and facts.now >= access_until
    if not allowed or tool in facts.deny or tool not in access or expired:
        return RefusalCode.TOOL_NOT_GRANTED
    return None


def check_approval(facts: RunFacts, digest: str) -> RefusalCode | None:
    """Refuse unless the run has an approval that names exactly this call and has not expired."""
    approval = facts.approval
    if approval is None or digest not in approval.calls:
        return RefusalCode.APPROVAL_MISSING
    if approval.expires_at is not None and facts.now >= approval.expires_at:
        return RefusalCode.APPROVAL_MISSING
    return None


def is_marked(origin: str, marks: int, *, marked_turn: UUID | None, turn: UUID | None) -> bool:
    """True if the models of this run have read instructions to the assistant. The turns of a conversation
    share one run; for them only what the same turn read counts."""
    return marks > 0 and (origin != Origin.CHAT or turn is None or marked_turn == turn)


def needs_own_approval(facts: RunFacts, *, intent: Intent, acting: bool, leaves: bool) -> bool:
    """True if this call needs a person's approval because of what its run has read: it acts, or goes to another
    host."""
    return facts.marked and (acting or leaves or intent in OUTSIDE_INTENTS)


def check_run_limits(facts: RunFacts, estimate: Decimal | None, *, tokens: int = 0) -> RefusalCode | None:
    """R4 for the run's own frozen limits. An estimate of None is an unknown price. `tokens` are those reserved for
    calls under way and those that this one may use at most."""
    limits = facts.limits
    if estimate is None:
        return RefusalCode.PRICE_UNKNOWN
    if limits.cost_usd is not None and facts.committed + estimate > limits.cost_usd:
        return RefusalCode.COST_CAP_REACHED
    if limits.tokens is not None and (facts.tokens >= limits.tokens or facts.tokens + tokens > limits.tokens):
        return RefusalCode.BUDGET_TOKENS
    if limits.calls is not None and facts.calls + 1 > limits.calls:
        return RefusalCode.BUDGET_TOOL_CALLS
    if limits.wall_seconds is not None and facts.seconds > limits.wall_seconds:
        return RefusalCode.BUDGET_WALL_CLOCK
    return None


def run_is_exhausted(facts: RunFacts, code: RefusalCode) -> bool:
    """True if a refusal by the run's own limits leaves nothing for a smaller call. While a tenth of the money or tokens
    is left, the refused call was only too large."""
    limits = facts.limits
    match code:
        case RefusalCode.COST_CAP_REACHED:
            return limits.cost_usd is None or facts.committed * 100 >= limits.cost_usd * NEARLY_ALL
        case RefusalCode.BUDGET_TOKENS:
            return limits.tokens is None or facts.tokens * 100 >= limits.tokens * NEARLY_ALL
        case _:
            return True


def call_timeout(facts: RunFacts, seconds: float) -> float:
    """Return how many seconds a call may take: no longer than its run."""
    limit = facts.limits.wall_seconds
    return seconds if limit is None else min(seconds, max(limit - facts.seconds, 1.0))


def uses_no_tokens(model: str) -> bool:
    """True for the built-in model, which uses no model tokens."""
    return model.startswith("builtin:")


def refusing_budgets(facts: RunFacts, budgets: Iterable[BudgetFacts], estimate: Decimal) -> list[BudgetFacts]:
    """Return the budgets that refuse: a limit would be passed, or was reached in this window. The tenant may soften its
    own limits and those of its deployments (`OnLimit`); a visitor's and a task's always apply."""
    hard = limit_stops(facts.on_limit, critical=facts.critical)

    def refuses(budget: BudgetFacts) -> bool:
        softened = budget.holder in _SOFTENED
        fits = budget.limit is None or budget.committed + estimate <= budget.limit
        return ((budget.is_paused and softened) or not fits) and (hard or not softened)

    return [budget for budget in budgets if refuses(budget)]


def check_budgets(refusing: Collection[BudgetFacts], platform: str = "") -> RefusalCode | None:
    """R4 for budgets: `refusing_budgets`, and the period of the installation's budget that has no room (or ""). A day's
    limit is named before a month's, and both before a visitor's or task's own."""
    shared = {budget.period for budget in refusing if budget.holder in _SOFTENED} | {platform}
    if Period.DAY in shared:
        return RefusalCode.GLOBAL_DAILY
    if Period.MONTH in shared:
        return RefusalCode.GLOBAL_MONTHLY
    return RefusalCode.COST_CAP_REACHED if refusing else None


def holder_of(deployment: object, visitor: object, task: object) -> Holder:
    """Return whose budget a row is, by which of its three ids is set."""
    if visitor:
        return Holder.VISITOR
    if task:
        return Holder.TASK
    return Holder.DEPLOYMENT if deployment else Holder.TENANT


def highest_threshold(spent: Decimal, limit: Decimal) -> int:
    """Return the highest threshold in percent that `spent` reaches; 0 for none."""
    return max((threshold for threshold in THRESHOLDS if spent * 100 >= limit * threshold), default=0)


def apply_movement(budget: BudgetFacts, *, reserved: Decimal, spent: Decimal) -> BudgetFacts:
    """Return the budget after a movement. Only spending reaches a threshold, reservations do not; reaching the limit
    pauses the window."""
    spent_now = budget.spent + spent
    reached = highest_threshold(spent_now, budget.limit) if spent and budget.limit is not None else 0
    return replace(
        budget,
        spent=spent_now,
        reserved=budget.reserved + reserved,
        alerted=max(budget.alerted, reached),
        paused_in=budget.window if reached == LIMIT and budget.alerted < LIMIT else budget.paused_in,
    )


def is_exhausted(budget: BudgetFacts) -> bool:
    """True if a refusing budget is spent. While a tenth is left, the refused call was only too expensive; reservations
    of calls under way do not count, because they may come back."""
    return budget.limit is not None and budget.spent * 100 >= budget.limit * NEARLY_ALL


def limit_ends_run(origin: str) -> bool:
    """True for unattended runs and work. A conversation goes on with what costs nothing (contract autonomy D)."""
    return origin != Origin.CHAT


def estimate_from_history(cold: Decimal | None, runs: int, mean: Decimal | None) -> Decimal | None:
    """Return the mean cost of similar runs once there are enough, else `cold`. An unknown price stays unknown."""
    enough = runs >= ENOUGH_RUNS and mean is not None
    return mean if cold is not None and enough else cold


def current_pause(reached: Iterable[tuple[str, date]], day: date) -> str:
    """Return the shortest period of reached limits, each with its period and window, whose window still applies on
    `day`; "" for none. A window later than `day` applies as well: the tenant has moved its time zone west."""
    # "day" sorts before "month".
    return min((period for period, window in reached if window >= window_start(period, day)), default="")


def local_day(zone: str, moment: datetime) -> date:
    """Return the calendar day at `moment` in a time zone."""
    return moment.astimezone(get_timezone(zone)).date()


def window_start(period: str, day: date) -> date:
    return day.replace(day=1) if period == Period.MONTH else day


def current_window(period: str, day: date, begun: date | None) -> date:
    """Return the window of `day`, but never one before `begun`, the window that has begun: a tenant that moves its time
    zone west, or a clock that is set back, must not get a day twice."""
    window = window_start(period, day)
    return window if begun is None else max(window, begun)


def window_end(period: str, window: date) -> date:
    """Return the first day after a window, on which its limit starts again."""
    if period == Period.DAY:
        return window + timedelta(days=1)
    # 32 days after the first of a month are always in the next one.
    return (window.replace(day=1) + timedelta(days=32)).replace(day=1)


def format_amount(amount: Decimal) -> str:
    """Format an amount with every significant digit, without exponent and trailing zeros."""
    return f"{amount.normalize():f}"
