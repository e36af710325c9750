"""May this call happen, now, at this cost? Decided from values alone: the brakes R5, R6, R4, grants, caps and windows.

The order R5 → R6 → approval → R4 belongs to the caller (contract autonomy A3, C); None says "nothing against it".
Money: projected above the cap refuses, equal passes. Counts: the N-th passes, the next refuses. 0 is a real cap.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import TypeVar
from uuid import UUID

from apps.guard.enums import HaltState, Holder, Intent, OnLimit, Origin, Pause, Period, Phase, RefusalCode, RunStatus
from apps.guard.schemas import BudgetFacts, BudgetRow, Limits, RunFacts
from kernel.timezones import get_timezone

N = TypeVar("N", int, Decimal)

# What leaves the house for an outside tool: in a run that works alone, in analysis only (contract autonomy A2).
OUTSIDE = frozenset({Intent.CALL_MCP_TOOL, Intent.WEB_SEARCH})
# Contract autonomy A2 for the seven first intents, and for `plan`; a model is asked in analysis alone. Chat scopes and
# work attempts may retrieve, run skills, ask outside tools and converse, and only work has files to read.
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
    | OUTSIDE,
    Phase.DRAFTING: frozenset({Intent.RUN_SKILL, Intent.PROPOSE_PRECEDENT, Intent.PROPOSE_MEMORY, Intent.EMIT_FINDING}),
    Phase.ETHICS_REVIEW: frozenset({Intent.EMIT_FINDING}),
    Phase.DELIVERY: frozenset({Intent.NOTIFY}),
    Phase.INTERACTIVE: frozenset({Intent.RETRIEVE_CHUNKS, Intent.RUN_SKILL, Intent.CONVERSE}) | OUTSIDE,
    Phase.EXECUTION: frozenset(
        {Intent.RETRIEVE_CHUNKS, Intent.RUN_SKILL, Intent.CONVERSE, Intent.READ_FILE, Intent.RUN_CONNECTION}
    )
    | OUTSIDE,
}

# In percent of a limit: what staff are told of, once each in a window; the last is the limit itself.
LIMIT = 100
THRESHOLDS = (50, 80, 90, LIMIT)
NEARLY_ALL = 90
ENOUGH_RUNS = 5
# What an amount's column holds.
DIGITS = 9
MOST_USD = Decimal(10) ** DIGITS
_SOFTENED = frozenset({Holder.TENANT, Holder.DEPLOYMENT})

# A model run is not a tool that a model could name: the phase alone grants it. Its caller makes it itself.
MODEL_RUNS = frozenset({Intent.CONVERSE, Intent.PLAN})

HALT_TRANSITIONS: Mapping[HaltState, frozenset[HaltState]] = {
    HaltState.RUNNING: frozenset({HaltState.PAUSED, HaltState.HALT_REQUESTED, HaltState.HALTED}),
    HaltState.PAUSED: frozenset({HaltState.RUNNING, HaltState.HALT_REQUESTED, HaltState.HALTED}),
    HaltState.HALT_REQUESTED: frozenset({HaltState.HALTED}),
    HaltState.HALTED: frozenset(),
}


def r5(facts: RunFacts) -> RefusalCode | None:
    """Anything that is not running stops, whoever set it; then the lease, then an administrator's pause; then, for what
    runs unattended, a limit that was reached, by its own name."""
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
    if facts.limit_paused and unattended and is_hard(facts.on_limit, critical=facts.critical):
        return RefusalCode.GLOBAL_DAILY if facts.limit_paused == Period.DAY else RefusalCode.GLOBAL_MONTHLY
    return None


def is_paused(pauses: Collection[str], *, critical: bool) -> bool:
    """Whether one of an administrator's pauses stops such a run."""
    return Pause.ALL in pauses or (Pause.NON_CRITICAL in pauses and not critical)


def is_hard(on_limit: str, *, critical: bool) -> bool:
    """Whether a reached limit of the company or a chatbot stops such a run, by what the tenant wants (contract B4)."""
    match OnLimit(on_limit):
        case OnLimit.PAUSE_ALL:
            return True
        case OnLimit.PAUSE_NON_CRITICAL:
            return not critical
        case OnLimit.ALERT_ONLY:
            return False


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


def is_marked(origin: str, marks: int, *, marked_turn: UUID | None, turn: UUID | None) -> bool:
    """Whether the models of this run have read instructions to the assistant (ADR 107). Of a conversation, whose turns
    share one run, only what this very turn read counts."""
    return marks > 0 and (origin != Origin.CHAT or turn is None or marked_turn == turn)


def is_lowered(facts: RunFacts, *, intent: Intent, acting: bool, leaves: bool) -> bool:
    """Whether this call needs a person's approval because of what its run has read: it acts, or goes to another
    host."""
    return facts.marked and (acting or leaves or intent in OUTSIDE)


def r4_run(facts: RunFacts, estimate: Decimal | None, *, tokens: int = 0) -> RefusalCode | None:
    """The run's own frozen limits; an estimate of None is a price that nobody knows. `tokens`: what is reserved for
    calls under way and what this one may use at most."""
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


def is_used_up(facts: RunFacts, code: RefusalCode) -> bool:
    """Whether a refusal by the run's own limits leaves nothing for a smaller call. Money and tokens do while a tenth of
    them is left, because one call that is too large for what is left says nothing of the others."""
    limits = facts.limits
    match code:
        case RefusalCode.COST_CAP_REACHED:
            return limits.cost_usd is None or facts.committed * 100 >= limits.cost_usd * NEARLY_ALL
        case RefusalCode.BUDGET_TOKENS:
            return limits.tokens is None or facts.tokens * 100 >= limits.tokens * NEARLY_ALL
        case _:
            return True


def patience(facts: RunFacts, wanted: float) -> float:
    """How long a call may take: no longer than its run."""
    most = facts.limits.wall_seconds
    return wanted if most is None else min(wanted, max(most - facts.seconds, 1.0))


def reads_nothing(model: str) -> bool:
    """Whether this is the built-in model, which uses no model tokens."""
    return model.startswith("builtin:")


def breached(facts: RunFacts, budgets: Iterable[BudgetFacts], estimate: Decimal) -> list[BudgetFacts]:
    """The budgets that refuse: a limit would be passed, or was reached in this window. The tenant may soften its own
    limits and its chatbots' (`OnLimit`); a visitor's and a task's always hold."""
    hard = is_hard(facts.on_limit, critical=facts.critical)
    return [each for each in budgets if _refuses(each, estimate) and (hard or each.holder not in _SOFTENED)]


def _refuses(budget: BudgetFacts, estimate: Decimal) -> bool:
    paused = budget.paused and budget.holder in _SOFTENED
    return paused or not _fits(budget, estimate)


def _fits(budget: BudgetFacts, estimate: Decimal) -> bool:
    return budget.limit is None or budget.committed + estimate <= budget.limit


def r4_budgets(refusing: Collection[BudgetFacts], platform: str = "") -> RefusalCode | None:
    """Every budget that `breached` named, and the period of the installation's that has no room (or ""); the day's is
    named before the month's, and both before one visitor's or task's own."""
    shared = {budget.period for budget in refusing if budget.holder in _SOFTENED} | {platform}
    if Period.DAY in shared:
        return RefusalCode.GLOBAL_DAILY
    if Period.MONTH in shared:
        return RefusalCode.GLOBAL_MONTHLY
    return RefusalCode.COST_CAP_REACHED if refusing else None


def holder_of(deployment: object, visitor: object, task: object) -> Holder:
    """Whose budget a row is, by which of its three ids is set."""
    if visitor:
        return Holder.VISITOR
    if task:
        return Holder.TASK
    return Holder.DEPLOYMENT if deployment else Holder.TENANT


def level(spent: Decimal, limit: Decimal) -> int:
    """The highest threshold that is reached."""
    return max((each for each in THRESHOLDS if spent * 100 >= limit * each), default=0)


def moved(budget: BudgetRow, window: date, *, reserved: Decimal, spent: Decimal) -> BudgetRow | None:
    """The budget after a movement in `window`, with the highest threshold that was reached; only what is spent reaches
    one, and the limit itself pauses the window. None where a later window has begun: one that is over stays as it was.
    """
    if budget.window_start is not None and budget.window_start > window:
        return None
    same = budget.window_start == window
    spent_now = spent + budget.spent if same else spent
    told = budget.alerted if same else 0
    reached = level(spent_now, budget.limit_usd) if spent and budget.limit_usd is not None else 0
    return budget._replace(
        window_start=window,
        spent=spent_now,
        reserved=reserved + budget.reserved if same else reserved,
        alerted=max(told, reached),
        paused_in=window if reached == LIMIT and told < LIMIT else budget.paused_in,
    )


def is_reached(budget: BudgetFacts) -> bool:
    """Whether a refusal says that the money is gone. One call that is too dear for what is left says nothing of the
    others, and reservations of calls under way come back."""
    return budget.limit is not None and budget.spent * 100 >= budget.limit * NEARLY_ALL


def ends_run(origin: str) -> bool:
    """A reached limit ends a run that works alone; a conversation goes on with what costs nothing (contract D)."""
    return origin != Origin.CHAT


def learned(cold: Decimal | None, runs: int, mean: Decimal | None) -> Decimal | None:
    """The mean of what runs like it cost, once there are enough of them; a price that nobody knows stays unknown."""
    enough = runs >= ENOUGH_RUNS and mean is not None
    return mean if cold is not None and enough else cold


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


def present(reached: Iterable[tuple[str, date]], day: date) -> str:
    """Of limits that were reached, each with its period and window: the shortest period whose window is `day`'s, or
    began later because the company moved its time zone west; or ""."""
    return min((period for period, window in reached if window >= window_start(period, day)), default="")


def day_in(zone: str, moment: datetime) -> date:
    """The tenant's calendar day at `moment`."""
    return moment.astimezone(get_timezone(zone)).date()


def window_start(period: str, day: date) -> date:
    return day.replace(day=1) if period == Period.MONTH else day


def present_window(period: str, day: date, begun: date | None) -> date:
    """The window of that day, but never one before a window that has begun: a company that moves its time zone to the
    west, or a clock that is set back, gets no day twice."""
    window = window_start(period, day)
    return window if begun is None else max(window, begun)


def plain(amount: Decimal) -> str:
    """An amount as people write it: every digit that counts, no exponent, no trailing zeros."""
    return f"{amount.normalize():f}"
