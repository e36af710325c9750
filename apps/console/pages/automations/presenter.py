"""The receipt of a run in words: its ending, phases, calls and cost. Pure.

A receipt is a mapping written by `apps.autonomy`; keys that an older receipt lacks read as empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from apps.autonomy.enums import SessionStatus, TriggerKind
from apps.autonomy.rules import PHASES
from apps.guard.enums import CallOutcomeLabel, CallState, HaltState, Intent, Phase, TerminalReason

Receipt = Mapping[str, Any]

PHASE_WORDS = {
    Phase.INTAKE: ("Collect", "gathers its input"),
    Phase.ANALYSIS: ("Analyse", "the only phase in which it can look things up"),
    Phase.DRAFTING: ("Draft", "writes findings and proposals"),
    Phase.ETHICS_REVIEW: ("Review", "checks them before delivery"),
    Phase.DELIVERY: ("Deliver", "sends the result"),
}
_ENDINGS = {
    TerminalReason.COMPLETED: "Completed.",
    TerminalReason.HEALTHY: "Nothing to do: everything is in order.",
    TerminalReason.EXTERNAL_HALT: "Stopped by a person.",
    TerminalReason.IDLE_TIMEOUT: "Stopped: idle for too long.",
    TerminalReason.COST_CAP_REACHED: "Stopped before it would exceed its cost limit.",
    TerminalReason.BUDGET_TOKENS: "Stopped: token limit reached.",
    TerminalReason.BUDGET_TOOL_CALLS: "Stopped: call limit reached.",
    TerminalReason.BUDGET_WALL_CLOCK: "Stopped: time limit reached.",
    TerminalReason.GLOBAL_DAILY: "Stopped: daily spending limit reached.",
    TerminalReason.GLOBAL_MONTHLY: "Stopped: monthly spending limit reached.",
    TerminalReason.TOOL_NOT_GRANTED: "Ended: it tried to use a tool that is not allowed.",
    TerminalReason.APPROVAL_MISSING: "Ended: an action was not approved.",
    TerminalReason.FAILED: "Failed.",
    TerminalReason.WORKER_LOST: "The process running it stopped. Its results so far are kept.",
    TerminalReason.CANCELLED: "Cancelled before it started.",
}
_STATUS = {
    SessionStatus.QUEUED: "Queued.",
    SessionStatus.RUNNING: "Running.",
    SessionStatus.AWAITING_APPROVAL: "Waiting for approval.",
}
_STARTED = {
    TriggerKind.CRON: "by schedule",
    TriggerKind.INTERVAL: "by interval",
    TriggerKind.EVENT: "by an event",
    TriggerKind.WATCH: "by a new document",
    TriggerKind.CHAIN: "after another automation",
    TriggerKind.GOAL_CHECK: "by a goal check",
    TriggerKind.MANUAL: "manually",
    TriggerKind.DELEGATED: "by another run",
    TriggerKind.ESCALATED: "by escalation from a smaller model",
}
_INTENTS = {
    Intent.RETRIEVE_CHUNKS: "Searched the knowledge base",
    Intent.RUN_SKILL: "Ran a skill",
    Intent.RUN_CONNECTION: "Used a connected account",
    Intent.RUN_PLAYBOOK: "Ran a built-in workflow",
    Intent.PROPOSE_PRECEDENT: "Recorded a recurring pattern",
    Intent.PROPOSE_MEMORY: "Proposed a memory",
    Intent.EMIT_FINDING: "Recorded a finding",
    Intent.NOTIFY: "Notified the owner",
    Intent.CONVERSE: "Called the model",
    Intent.PLAN: "Planned the next step",
    Intent.READ_FILE: "Read a file",
    Intent.CALL_MCP_TOOL: "Called an external tool",
    Intent.WEB_SEARCH: "Searched the web",
}
_OUTCOMES = {
    CallState.ADMITTED: "running",
    CallState.EXECUTED: "done",
    CallOutcomeLabel.SUCCESS: "done",
    CallState.ERROR: "failed",
    CallState.UNCERTAIN: "outcome unknown",
    CallState.DENIED: "blocked by policy",
    CallState.REFUSED: "not allowed",
    CallOutcomeLabel.TOOL_NOT_GRANTED: "not allowed",
}
_GOOD = frozenset({CallState.EXECUTED.value, CallOutcomeLabel.SUCCESS.value})
_OPEN = frozenset({CallState.ADMITTED.value, CallOutcomeLabel.STARTED.value})


@dataclass(frozen=True)
class Step:
    """A phase of the run. `state` is `done`, `now`, `bad` (the run ended here) or empty (not reached)."""

    name: str
    about: str
    state: str
    words: str
    entered: datetime | None = None
    left: datetime | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Line:
    """A call with its result; `mark` as in the activity feed."""

    mark: str
    lead: str
    tool: str
    outcome: str
    cost: Decimal
    at: datetime | None


@dataclass(frozen=True)
class Bar:
    """Spent and reserved cost, also as widths in percent of the cap; `cap` is None without one."""

    spent: Decimal
    reserved: Decimal
    cap: Decimal | None
    spent_width: float
    reserved_width: float
    is_near: bool

    @property
    def left(self) -> Decimal | None:
        return None if self.cap is None else max(self.cap - self.spent - self.reserved, Decimal(0))


@dataclass(frozen=True)
class Used:
    """A counted resource; `most` is None without a limit."""

    name: str
    used: int
    most: int | None


def ending(receipt: Receipt) -> str:
    """Return why the run ended, or its status, in one sentence."""
    status, reason = str(receipt.get("status", "")), str(receipt.get("terminal_reason") or "")
    if reason in TerminalReason.values:
        return _ENDINGS[TerminalReason(reason)]
    if status in SessionStatus.values and SessionStatus(status) in _STATUS:
        stopping = receipt.get("halt_state") == HaltState.HALT_REQUESTED and status == SessionStatus.RUNNING
        return "Stopping before the next call." if stopping else _STATUS[SessionStatus(status)]
    return "Ended."


def began(receipt: Receipt) -> str:
    """Return what started the run."""
    kind = str(receipt.get("trigger_kind", ""))
    return _STARTED[TriggerKind(kind)] if kind in TriggerKind.values else "for an unknown reason"


def steps(receipt: Receipt) -> list[Step]:
    """Return all five phases in order, including those not reached."""
    entered = {str(row.get("to_phase")): row for row in _rows(receipt, "phase_transitions")}
    reached = [phase for phase in PHASES if phase.value in entered]
    broke_off = receipt.get("status") in (SessionStatus.HALTED, SessionStatus.FAILED)
    last = reached[-1] if reached and broke_off else None
    return [_step(phase, entered.get(phase.value), ended_here=phase is last) for phase in PHASES]


def _step(phase: Phase, row: Receipt | None, *, ended_here: bool) -> Step:
    name, about = PHASE_WORDS[phase]
    if row is None:
        return Step(name, about, "", "not reached")
    started, left = moment_of(row.get("timestamp")), moment_of(row.get("left_at"))
    state = "bad" if ended_here else ("done" if left else "now")
    words = {"done": "done", "now": "in progress", "bad": "ended here"}[state]
    seconds = (left - started).total_seconds() if started and left else None
    return Step(name, about, state, words, started, left, seconds)


def calls(receipt: Receipt) -> list[Line]:
    """Return the calls in order."""
    return [_line(row) for row in _rows(receipt, "tool_calls")]


def _line(row: Receipt) -> Line:
    intent, outcome = str(row.get("intent", "")), str(row.get("outcome", ""))
    lead = _INTENTS[Intent(intent)] if intent in Intent.values else _humane(intent) or "Made a call"
    known = {key.value: words for key, words in _OUTCOMES.items()}
    words = known.get(outcome, _humane(outcome))
    code = str(row.get("error_code") or "")
    mark = "ok" if outcome in _GOOD else ("ask" if outcome in _OPEN else "bad")
    at, cost = moment_of(row.get("timestamp")), dollars_of(row.get("cost_usd"))
    return Line(mark, lead, str(row.get("tool") or ""), f"{words}: {_humane(code)}" if code else words, cost, at)


def bar(receipt: Receipt) -> Bar:
    """Return the cost and its cap; widths stay between 0 and 100 whatever was charged."""
    spent, reserved = dollars_of(receipt.get("cost_total_usd")), dollars_of(receipt.get("cost_reserved_usd"))
    max_cost = receipt.get("max_cost_usd")
    cap = None if max_cost is None else dollars_of(max_cost)
    full = _share(spent, cap)
    more = min(_share(spent + reserved, cap), 100.0) - full
    near = bool(receipt.get("cost_cap_reached")) or (cap is not None and spent + reserved >= cap * Decimal("0.8"))
    return Bar(spent, reserved, cap, full, round(max(more, 0.0), 2), near)


def _share(amount: Decimal, cap: Decimal | None) -> float:
    if not cap:
        return 100.0 if cap is not None and amount > 0 else 0.0
    return round(min(float(amount / cap) * 100, 100.0), 2)


_COUNTED = (
    ("calls", "calls", "Calls"),
    ("tokens", "tokens", "Model tokens"),
    ("seconds", "wall_seconds", "Seconds"),
    ("memory_writes", "memory_writes", "Proposed memories"),
)


def used(receipt: Receipt) -> list[Used]:
    """Return the counted resources other than money."""
    has, most = _mapping(receipt, "used"), _mapping(receipt, "limits")
    return [Used(title, _count(has.get(name)) or 0, _count(most.get(limit))) for name, limit, title in _COUNTED]


def dollars_of(value: Any) -> Decimal:
    """Return an amount of a receipt; 0 for anything else."""
    try:
        amount = Decimal(str(value or 0))
    except InvalidOperation:
        return Decimal(0)
    return amount if amount.is_finite() else Decimal(0)


def moment_of(value: Any) -> datetime | None:
    """Return a moment of a receipt; None without a time zone."""
    if isinstance(value, datetime):
        return value if value.tzinfo else None
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def _count(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and value == value and abs(value) < 1e15 else None


def _rows(receipt: Receipt, name: str) -> list[Receipt]:
    value = receipt.get(name)
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []


def _mapping(receipt: Receipt, name: str) -> Receipt:
    value = receipt.get(name)
    return value if isinstance(value, Mapping) else {}


def _humane(code: str) -> str:
    return code.replace("_", " ")
