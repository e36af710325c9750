"""The receipt of a run in words: its ending, phases, calls and cost. Pure.

A receipt is a mapping written by `apps.autonomy`; keys that an older receipt lacks read as empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from apps.autonomy.enums import Egress, SessionStatus, TriggerKind
from apps.autonomy.rules import PHASES
from apps.guard.enums import CallOutcomeLabel, CallState, HaltState, Intent, Phase, RefusalCode, TerminalReason

Receipt = Mapping[str, Any]

PHASE_WORDS = {
    Phase.INTAKE: (gettext_lazy("Collect"), gettext_lazy("gathers its input")),
    Phase.ANALYSIS: (gettext_lazy("Analyse"), gettext_lazy("the only phase in which it can look things up")),
    Phase.DRAFTING: (gettext_lazy("Draft"), gettext_lazy("writes findings and proposals")),
    Phase.ETHICS_REVIEW: (gettext_lazy("Review"), gettext_lazy("checks them before delivery")),
    Phase.DELIVERY: (gettext_lazy("Deliver"), gettext_lazy("sends the result")),
}
_ENDINGS = {
    TerminalReason.COMPLETED: gettext_lazy("Completed."),
    TerminalReason.HEALTHY: gettext_lazy("Nothing to do: everything is in order."),
    TerminalReason.EXTERNAL_HALT: gettext_lazy("Stopped by a person."),
    TerminalReason.IDLE_TIMEOUT: gettext_lazy("Stopped: idle for too long."),
    TerminalReason.COST_CAP_REACHED: gettext_lazy("Stopped before it would exceed its cost limit."),
    TerminalReason.BUDGET_TOKENS: gettext_lazy("Stopped: token limit reached."),
    TerminalReason.BUDGET_TOOL_CALLS: gettext_lazy("Stopped: call limit reached."),
    TerminalReason.BUDGET_WALL_CLOCK: gettext_lazy("Stopped: time limit reached."),
    TerminalReason.GLOBAL_DAILY: gettext_lazy("Stopped: daily spending limit reached."),
    TerminalReason.GLOBAL_MONTHLY: gettext_lazy("Stopped: monthly spending limit reached."),
    TerminalReason.TOOL_NOT_GRANTED: gettext_lazy("Ended: it tried to use a tool that is not allowed."),
    TerminalReason.APPROVAL_MISSING: gettext_lazy("Ended: an action was not approved."),
    TerminalReason.FAILED: gettext_lazy("Failed."),
    TerminalReason.WORKER_LOST: gettext_lazy("The process running it stopped. Its results so far are kept."),
    TerminalReason.CANCELLED: gettext_lazy("Cancelled before it started."),
}
_STATUS = {
    SessionStatus.QUEUED: gettext_lazy("Queued."),
    SessionStatus.RUNNING: gettext_lazy("Running."),
    SessionStatus.AWAITING_APPROVAL: gettext_lazy("Waiting for approval."),
}
_STARTED = {
    TriggerKind.CRON: gettext_lazy("by schedule"),
    TriggerKind.INTERVAL: gettext_lazy("by interval"),
    TriggerKind.EVENT: gettext_lazy("by an event"),
    TriggerKind.WATCH: gettext_lazy("by a new document"),
    TriggerKind.CHAIN: gettext_lazy("after another automation"),
    TriggerKind.GOAL_CHECK: gettext_lazy("by a goal check"),
    TriggerKind.MANUAL: gettext_lazy("manually"),
    TriggerKind.DELEGATED: gettext_lazy("by another run"),
    TriggerKind.ESCALATED: gettext_lazy("by escalation from a smaller model"),
}
_INTENTS = {
    Intent.RETRIEVE_CHUNKS: gettext_lazy("Searched the knowledge base"),
    Intent.RUN_SKILL: gettext_lazy("Ran a skill"),
    Intent.RUN_CONNECTION: gettext_lazy("Used a connected account"),
    Intent.RUN_PLAYBOOK: gettext_lazy("Ran a built-in workflow"),
    Intent.PROPOSE_PRECEDENT: gettext_lazy("Recorded a recurring pattern"),
    Intent.PROPOSE_MEMORY: gettext_lazy("Proposed a memory"),
    Intent.EMIT_FINDING: gettext_lazy("Recorded a finding"),
    Intent.EMIT_ARTIFACT: gettext_lazy("Stored an artifact"),
    Intent.NOTIFY: gettext_lazy("Notified the owner"),
    Intent.CONVERSE: gettext_lazy("Called the model"),
    Intent.PLAN: gettext_lazy("Planned the next step"),
    Intent.READ_FILE: gettext_lazy("Read a file"),
    Intent.CALL_MCP_TOOL: gettext_lazy("Called an external tool"),
    Intent.WEB_SEARCH: gettext_lazy("Searched the web"),
}
_OUTCOMES = {
    CallState.ADMITTED: gettext_lazy("running"),
    CallState.EXECUTED: gettext_lazy("done"),
    CallOutcomeLabel.SUCCESS: gettext_lazy("done"),
    CallState.ERROR: gettext_lazy("failed"),
    CallState.UNCERTAIN: gettext_lazy("outcome unknown"),
    CallState.DENIED: gettext_lazy("blocked by policy"),
    CallState.REFUSED: gettext_lazy("not allowed"),
    RefusalCode.TOOL_NOT_GRANTED: gettext_lazy("not allowed"),
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
        return str(_ENDINGS[TerminalReason(reason)])
    if status in SessionStatus.values and SessionStatus(status) in _STATUS:
        stopping = receipt.get("halt_state") == HaltState.HALT_REQUESTED and status == SessionStatus.RUNNING
        return _("Stopping before the next call.") if stopping else str(_STATUS[SessionStatus(status)])
    return _("Ended.")


def began(receipt: Receipt) -> str:
    """Return what started the run."""
    kind = str(receipt.get("trigger_kind", ""))
    return str(_STARTED[TriggerKind(kind)]) if kind in TriggerKind.values else _("for an unknown reason")


def steps(receipt: Receipt) -> list[Step]:
    """Return all five phases in order, including those not reached."""
    entered = {str(row.get("to_phase")): row for row in _rows(receipt, "phase_transitions")}
    reached = [phase for phase in PHASES if phase.value in entered]
    broke_off = receipt.get("status") in (SessionStatus.HALTED, SessionStatus.FAILED)
    last = reached[-1] if reached and broke_off else None
    return [_step(phase, entered.get(phase.value), ended_here=phase is last) for phase in PHASES]


def _step(phase: Phase, row: Receipt | None, *, ended_here: bool) -> Step:
    name, about = map(str, PHASE_WORDS[phase])
    if row is None:
        return Step(name, about, "", _("not reached"))
    started, left = moment_of(row.get("timestamp")), moment_of(row.get("left_at"))
    state = "bad" if ended_here else ("done" if left else "now")
    words = {"done": _("done"), "now": _("in progress"), "bad": _("ended here")}[state]
    seconds = (left - started).total_seconds() if started and left else None
    return Step(name, about, state, words, started, left, seconds)


def calls(receipt: Receipt) -> list[Line]:
    """Return the calls in order."""
    return [_line(row) for row in _rows(receipt, "tool_calls")]


def _line(row: Receipt) -> Line:
    intent, outcome = str(row.get("intent", "")), str(row.get("outcome", ""))
    lead = str(_INTENTS[Intent(intent)]) if intent in Intent.values else _humane(intent) or _("Made a call")
    known = {key.value: str(words) for key, words in _OUTCOMES.items()}
    words = known.get(outcome, _humane(outcome))
    code = str(row.get("error_code") or "")
    mark = "ok" if outcome in _GOOD else ("ask" if outcome in _OPEN else "bad")
    at, cost = moment_of(row.get("timestamp")), dollars_of(row.get("cost_usd"))
    return Line(mark, lead, str(row.get("tool") or ""), f"{words}: {_humane(code)}" if code else words, cost, at)


def bar(receipt: Receipt) -> Bar:
    """Return the cost and its cap; widths stay between 0 and 100."""
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
    ("calls", "calls", gettext_lazy("Calls")),
    ("tokens", "tokens", gettext_lazy("Model tokens")),
    ("seconds", "wall_seconds", gettext_lazy("Seconds")),
    ("memory_writes", "memory_writes", gettext_lazy("Proposed memories")),
)


def used(receipt: Receipt) -> list[Used]:
    """Return the counted resources other than money."""
    has, most = _mapping(receipt, "used"), _mapping(receipt, "limits")
    return [Used(str(title), _count(has.get(name)) or 0, _count(most.get(limit))) for name, limit, title in _COUNTED]


def egress(receipt: Receipt) -> str:
    """Return what left for models and outside services, in words; empty for a receipt that does not say."""
    left = _mapping(receipt, "egress")
    tier = str(left.get("tier", ""))
    if tier not in Egress.values:
        return ""
    replaced = sum(_count(many) or 0 for many in _mapping(left, "replaced").values())
    words = ngettext("%(number)s value replaced", "%(number)s values replaced", replaced) % {"number": replaced}
    return f"{Egress(tier).label} ({words})" if replaced else str(Egress(tier).label)


def kept(receipt: Receipt) -> int:
    """Return how many steps of an earlier run this one did not repeat."""
    continued = _mapping(receipt, "continues")
    phases = continued.get("phases")
    counted = sum(_count(continued.get(name)) or 0 for name in ("steps", "reads", "written"))
    return counted + (len(phases) if isinstance(phases, list) else 0)


def dollars_of(value: object) -> Decimal:
    """Return an amount of a receipt; 0 for anything else."""
    try:
        amount = Decimal(str(value or 0))
    except InvalidOperation:
        return Decimal(0)
    return amount if amount.is_finite() else Decimal(0)


def moment_of(value: object) -> datetime | None:
    """Return a moment of a receipt; None without a time zone."""
    if isinstance(value, datetime):
        return value if value.tzinfo else None
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def _count(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and value == value and abs(value) < 1e15 else None


def _rows(receipt: Receipt, name: str) -> list[Receipt]:
    value = receipt.get(name)
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []


def _mapping(receipt: Receipt, name: str) -> Receipt:
    value = receipt.get(name)
    return value if isinstance(value, Mapping) else {}


def _humane(code: str) -> str:
    return code.replace("_", " ")
