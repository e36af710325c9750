"""How does a receipt read to people? Its ending, its phases, its calls and its money, in plain words. Pure.

A receipt is the mapping of `apps.autonomy`; a key that an older one does not have reads as nothing.
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
    Phase.INTAKE: ("Collect", "what it was given to look at"),
    Phase.ANALYSIS: ("Think", "the only part in which it may look further"),
    Phase.DRAFTING: ("Write down", "each finding and proposal"),
    Phase.ETHICS_REVIEW: ("Look it over", "before anybody is told"),
    Phase.DELIVERY: ("Hand over", "to where the result goes"),
}
_ENDS = {
    TerminalReason.COMPLETED: "It did what it was asked to.",
    TerminalReason.HEALTHY: "There was nothing to do: all is as it should be.",
    TerminalReason.EXTERNAL_HALT: "A person stopped it.",
    TerminalReason.IDLE_TIMEOUT: "It was stopped because it did nothing for too long.",
    TerminalReason.COST_CAP_REACHED: "It was stopped before it would have spent more than it may.",
    TerminalReason.BUDGET_TOKENS: "It was stopped because its model tokens were used up.",
    TerminalReason.BUDGET_TOOL_CALLS: "It was stopped because it had made all the calls it may make.",
    TerminalReason.BUDGET_WALL_CLOCK: "It was stopped because its time was used up.",
    TerminalReason.GLOBAL_DAILY: "It was stopped because the day's spending limit was reached.",
    TerminalReason.GLOBAL_MONTHLY: "It was stopped because the month's spending limit was reached.",
    TerminalReason.TOOL_NOT_GRANTED: "It was ended because it reached for something that it may not use.",
    TerminalReason.APPROVAL_MISSING: "It was ended because nobody had approved what it wanted to do.",
    TerminalReason.FAILED: "It could not be finished.",
    TerminalReason.WORKER_LOST: "The process that ran it is gone; what it had done is kept.",
    TerminalReason.CANCELLED: "It was called off before it began.",
}
_STANDS = {
    SessionStatus.QUEUED: "It waits for its turn.",
    SessionStatus.RUNNING: "It is under way.",
    SessionStatus.AWAITING_APPROVAL: "It waits for a person's yes.",
}
_BEGAN = {
    TriggerKind.CRON: "by its schedule",
    TriggerKind.INTERVAL: "because it was time again",
    TriggerKind.EVENT: "because something happened",
    TriggerKind.WATCH: "because a document came in",
    TriggerKind.CHAIN: "after another task",
    TriggerKind.GOAL_CHECK: "because a goal was looked at",
    TriggerKind.MANUAL: "by hand",
    TriggerKind.DELEGATED: "for another session",
    TriggerKind.ESCALATED: "because a small model asked for a capable one",
}
_INTENTS = {
    Intent.RETRIEVE_CHUNKS: "Looked something up",
    Intent.RUN_SKILL: "Ran a skill",
    Intent.RUN_CONNECTION: "Saw to an outside account",
    Intent.RUN_PLAYBOOK: "Ran a built-in workflow",
    Intent.PROPOSE_PRECEDENT: "Noted that something comes up again",
    Intent.PROPOSE_MEMORY: "Proposed something to keep",
    Intent.EMIT_FINDING: "Wrote down a finding",
    Intent.NOTIFY: "Told the owner",
    Intent.CONVERSE: "Asked the model",
    Intent.PLAN: "Asked the model what to look at next",
    Intent.READ_FILE: "Read a file",
    Intent.CALL_MCP_TOOL: "Asked an outside tool",
    Intent.WEB_SEARCH: "Searched the web",
}
_OUTCOMES = {
    CallState.ADMITTED: "under way",
    CallState.EXECUTED: "done",
    CallOutcomeLabel.SUCCESS: "done",
    CallState.ERROR: "failed",
    CallState.UNCERTAIN: "its end is unknown",
    CallState.DENIED: "not allowed by policy",
    CallState.REFUSED: "not allowed here",
    CallOutcomeLabel.TOOL_NOT_GRANTED: "not allowed here",
}
_GOOD = frozenset({CallState.EXECUTED.value, CallOutcomeLabel.SUCCESS.value})
_OPEN = frozenset({CallState.ADMITTED.value, CallOutcomeLabel.STARTED.value})


@dataclass(frozen=True)
class Step:
    """A phase as a stop on the way. `state`: done, now, bad (it ended here) or "" (not reached)."""

    name: str
    about: str
    state: str
    words: str
    entered: datetime | None = None
    left: datetime | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Line:
    """A call: what it did and how it went. `mark` as in the timeline of Activity."""

    mark: str
    lead: str
    tool: str
    outcome: str
    cost: Decimal
    at: datetime | None


@dataclass(frozen=True)
class Bar:
    """What is spent and reserved of what there is, as widths of a hundred. `cap` None: no cap was said."""

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
    """A thing that is counted: how many of how many. `most` None: as many as it likes."""

    name: str
    used: int
    most: int | None


def ending(receipt: Receipt) -> str:
    """Why it ended, or how it stands, in one sentence."""
    status, reason = str(receipt.get("status", "")), str(receipt.get("terminal_reason") or "")
    if reason in TerminalReason.values:
        return _ENDS[TerminalReason(reason)]
    if status in SessionStatus.values and SessionStatus(status) in _STANDS:
        stopping = receipt.get("halt_state") == HaltState.HALT_REQUESTED and status == SessionStatus.RUNNING
        return "It stops before its next call." if stopping else _STANDS[SessionStatus(status)]
    return "It ended."


def began(receipt: Receipt) -> str:
    """What made it begin."""
    kind = str(receipt.get("trigger_kind", ""))
    return _BEGAN[TriggerKind(kind)] if kind in TriggerKind.values else "for a reason unknown here"


def steps(receipt: Receipt) -> list[Step]:
    """All five phases in their order, those that were not reached too."""
    entered = {str(one.get("to_phase")): one for one in _rows(receipt, "phase_transitions")}
    reached = [phase for phase in PHASES if phase.value in entered]
    broke_off = receipt.get("status") in (SessionStatus.HALTED, SessionStatus.FAILED)
    last = reached[-1] if reached and broke_off else None
    return [_step(phase, entered.get(phase.value), ended_here=phase is last) for phase in PHASES]


def _step(phase: Phase, row: Receipt | None, *, ended_here: bool) -> Step:
    name, about = PHASE_WORDS[phase]
    if row is None:
        return Step(name, about, "", "not reached")
    begun, left = moment_of(row.get("timestamp")), moment_of(row.get("left_at"))
    state = "bad" if ended_here else ("done" if left else "now")
    words = {"done": "done", "now": "here now", "bad": "ended here"}[state]
    return Step(name, about, state, words, begun, left, (left - begun).total_seconds() if begun and left else None)


def calls(receipt: Receipt) -> list[Line]:
    """What it called, in order."""
    return [_line(one) for one in _rows(receipt, "tool_calls")]


def _line(row: Receipt) -> Line:
    intent, outcome = str(row.get("intent", "")), str(row.get("outcome", ""))
    lead = _INTENTS[Intent(intent)] if intent in Intent.values else _humane(intent) or "Called something"
    known = {key.value: words for key, words in _OUTCOMES.items()}
    words = known.get(outcome, _humane(outcome))
    code = str(row.get("error_code") or "")
    mark = "ok" if outcome in _GOOD else ("ask" if outcome in _OPEN else "bad")
    at, cost = moment_of(row.get("timestamp")), dollars_of(row.get("cost_usd"))
    return Line(mark, lead, str(row.get("tool") or ""), f"{words}: {_humane(code)}" if code else words, cost, at)


def bar(receipt: Receipt) -> Bar:
    """What it cost of what it may cost; widths stay between 0 and 100 whatever was charged."""
    spent, reserved = dollars_of(receipt.get("cost_total_usd")), dollars_of(receipt.get("cost_reserved_usd"))
    said = receipt.get("max_cost_usd")
    cap = None if said is None else dollars_of(said)
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
    ("memory_writes", "memory_writes", "Things to keep"),
)


def used(receipt: Receipt) -> list[Used]:
    """Everything but money that is counted."""
    has, most = _mapping(receipt, "used"), _mapping(receipt, "limits")
    return [Used(title, _count(has.get(name)) or 0, _count(most.get(limit))) for name, limit, title in _COUNTED]


def dollars_of(value: Any) -> Decimal:
    """An amount as a receipt writes it; what is no amount is 0."""
    try:
        amount = Decimal(str(value or 0))
    except InvalidOperation:
        return Decimal(0)
    return amount if amount.is_finite() else Decimal(0)


def moment_of(value: Any) -> datetime | None:
    """A moment as a receipt writes it; a clock without a zone is none."""
    if isinstance(value, datetime):
        return value if value.tzinfo else None
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return found if found.tzinfo else None


def _count(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and value == value and abs(value) < 1e15 else None


def _rows(receipt: Receipt, name: str) -> list[Receipt]:
    found = receipt.get(name)
    return [row for row in found if isinstance(row, Mapping)] if isinstance(found, list) else []


def _mapping(receipt: Receipt, name: str) -> Receipt:
    found = receipt.get(name)
    return found if isinstance(found, Mapping) else {}


def _humane(code: str) -> str:
    return code.replace("_", " ")
