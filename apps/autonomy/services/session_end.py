"""End a session exactly once, with a status, a reason from the closed list, and a stored receipt.

The run is closed, the session's row written and members notified in one transaction. After a fault of the machine the
same occasion is queued again as a new session; after the last attempt the task is quarantined with the reason. A brake
is not a fault and is never retried; after a limit of the company, the occasion continues in its next window.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.db.models import F
from django.db.models.functions import Greatest, Now

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.autonomy import queries, rules, signals
from apps.autonomy.enums import SessionStatus, TaskEvent, TriggerKind
from apps.autonomy.models import AutonomousSession, Checkpoint, Task
from apps.autonomy.receipts import build_receipt, build_short_receipt
from apps.autonomy.schemas import TaskLimits
from apps.autonomy.services import bus_messages, limit_increases, notices, session_start
from apps.autonomy.services.occurrences import record_occurrence
from apps.guard import services as guard
from apps.guard.enums import RunStatus, TerminalReason
from apps.guard.models import GuardedRun
from apps.work import rules as work_rules
from apps.work.enums import WorkItemStatus
from apps.work.models import WorkItem
from kernel.tenancy import run_isolated

WORKER_LOST = "worker_lost"
_EVENTS = {
    SessionStatus.COMPLETED: TaskEvent.COMPLETED,
    SessionStatus.HALTED: TaskEvent.HALTED,
    SessionStatus.FAILED: TaskEvent.FAILED,
    SessionStatus.CANCELLED: TaskEvent.HALTED,
}
_RUN_STATUS = {SessionStatus.COMPLETED: RunStatus.COMPLETED, SessionStatus.HALTED: RunStatus.HALTED}
_LIMIT_REASONS = frozenset(
    {
        TerminalReason.COST_CAP_REACHED,
        TerminalReason.BUDGET_TOKENS,
        TerminalReason.BUDGET_TOOL_CALLS,
        TerminalReason.BUDGET_WALL_CLOCK,
        TerminalReason.GLOBAL_DAILY,
        TerminalReason.GLOBAL_MONTHLY,
    }
)


# A limit of the company: it is over with its window, or when an owner lets runs continue.
_WINDOW_REASONS = frozenset({TerminalReason.GLOBAL_DAILY, TerminalReason.GLOBAL_MONTHLY})


@dataclass(frozen=True)
class Ending:
    """How a session ends.

    `fault`: the machine failed, not the task, so the occasion is tried again. `outcome` is the result of the current
    phase, `state` what it leaves to a session that continues, `awaits` the id of the work item that waits for approval.
    """

    status: SessionStatus
    reason: TerminalReason
    error_code: str = ""
    output: str = ""
    fault: bool = False
    outcome: str = ""
    awaits: str = ""
    state: Mapping[str, Any] | None = None


WORKER_HUNG = "worker_hung"
LATE = Ending(
    SessionStatus.HALTED, TerminalReason.BUDGET_WALL_CLOCK, WORKER_HUNG, outcome=TerminalReason.BUDGET_WALL_CLOCK.value
)
LOST = Ending(SessionStatus.FAILED, TerminalReason.WORKER_LOST, WORKER_LOST, fault=True, outcome=WORKER_LOST)


def end(session: AutonomousSession, ending: Ending, *, actor: str = "system") -> None:
    """End the locked session. Does nothing for one that is over."""
    if session.is_over:
        return
    ending = _with_halt_reason(session, ending)
    # Phase and run first: the receipt reads both.
    _leave_phase(session, ending)
    _close_run(session, ending)
    if ending.awaits:
        # Locked, because a decision under way would not find this session waiting yet.
        rows = WorkItem.objects.select_for_update(no_key=True).filter(pk=UUID(ending.awaits))
        status = rows.values_list("status", flat=True).first()
        approved = False if status is None else approval_in_status(status)
        if approved is None:
            _park(session, ending)
            return
        ending = _with_approval(ending, approved=approved)
    session.status, session.terminal_reason = ending.status, ending.reason
    session.error_code, session.output = ending.error_code[:60], ending.output
    session.ended_at = _database_time(session)
    session.receipt = _receipt(session)
    session.save(update_fields=["status", "terminal_reason", "error_code", "output", "ended_at", "receipt", "phase"])
    data = {"status": session.status, "reason": session.terminal_reason, "attempt": session.attempt}
    record(AuditEvent.AUTONOMOUS_ENDED, actor=actor, subject=f"autonomous:{session.pk}", data=data)
    bus_messages.enqueue_admission()
    # A canceled session was never dispatched; its trigger may have collected occurrences behind it.
    if session.admitted_at is None:
        bus_messages.enqueue_dispatch(session)
    _announce(session)
    if ending.reason in _WINDOW_REASONS:
        _continue_after_window(session)
    if ending.fault:
        # A task whose rows cannot be read is quarantined without a retry: a person has to repair it.
        run_isolated(_retry, session, lambda error: _set_aside(session, reason=type(error).__name__))


def _with_halt_reason(session: AutonomousSession, ending: Ending) -> Ending:
    """A session that was asked to stop stays stopped: a fault on the way does not start it again."""
    if not (session.halt_reason and (ending.fault or ending is LATE)):
        return ending
    return replace(ending, status=SessionStatus.HALTED, reason=TerminalReason(session.halt_reason), fault=False)


def _park(session: AutonomousSession, ending: Ending) -> None:
    """Keep the session open until a person decides about work that it led to; its place and lane are free meanwhile."""
    session.status, session.awaits, session.admitted_at = SessionStatus.AWAITING_APPROVAL, UUID(ending.awaits), None
    session.output, session.receipt = ending.output, _receipt(session)
    session.save(update_fields=["status", "awaits", "admitted_at", "output", "receipt", "phase"])
    record(AuditEvent.AUTONOMOUS_PARKED, subject=f"autonomous:{session.pk}", data={"work": ending.awaits})
    bus_messages.enqueue_admission()


def approval_in_status(status: str) -> bool | None:
    """What a work item's status says about its approval: given, not given, or None for undecided."""
    if status == WorkItemStatus.RUNNING or status in work_rules.FINAL:
        return status in (WorkItemStatus.RUNNING, WorkItemStatus.DONE)
    return None


def _with_approval(ending: Ending, *, approved: bool) -> Ending:
    status = SessionStatus.COMPLETED if approved else SessionStatus.CANCELLED
    reason = TerminalReason.COMPLETED if approved else TerminalReason.APPROVAL_MISSING
    return replace(ending, status=status, reason=reason, awaits="")


def end_waiting_sessions(work_item_id: UUID, *, approved: bool) -> None:
    """End the sessions that wait for this work item, with a person's decision about it."""
    waiting = AutonomousSession.objects.filter(status=SessionStatus.AWAITING_APPROVAL, awaits=work_item_id)
    for session in waiting.select_for_update(of=("self",), no_key=True).select_related("task", "run"):
        completed = Ending(SessionStatus.COMPLETED, TerminalReason.COMPLETED, output=session.output)
        end(session, _with_approval(completed, approved=approved))


def _database_time(session: AutonomousSession) -> datetime:
    """The database's time, by which all times of a session are measured."""
    moment: datetime = (
        AutonomousSession.objects.annotate(moment=Now()).values_list("moment", flat=True).get(pk=session.pk)
    )
    return moment


def _leave_phase(session: AutonomousSession, ending: Ending) -> None:
    """Store the result of the phase under way. `Greatest` lets a session end even after the clock was set back."""
    outcome = ending.outcome or ending.reason.value
    state = {} if ending.state is None else {"state": dict(ending.state)}
    current = Checkpoint.objects.filter(session=session, left_at=None)
    current.update(left_at=Greatest(Now(), F("entered_at")), outcome=outcome[:60], **state)


def _close_run(session: AutonomousSession, ending: Ending) -> None:
    if session.run_id is None:
        return
    # Calls without a result become uncertain and keep their reservation: they may have had their effect.
    guard.abandon_calls(session.run_id)
    guard.close_run(session.run_id, status=_RUN_STATUS.get(ending.status, RunStatus.FAILED), reason=ending.reason)
    session.run = GuardedRun.objects.get(pk=session.run_id)
    session.phase = session.run.phase


def _announce(session: AutonomousSession) -> None:
    reason = TerminalReason(session.terminal_reason)
    if reason in _LIMIT_REASONS:
        signals.task_event(session, TaskEvent.BUDGET_EXCEEDED, {"limit": reason.value})
    data = {"reason": reason.value, "error_code": session.error_code}
    signals.task_event(session, _EVENTS[SessionStatus(session.status)], data)
    signals.session_ended(session)
    if _belongs_to_collector(session):
        return
    if session.status == SessionStatus.COMPLETED:
        record_occurrence(f"chain:{session.task_id}", str(session.pk))
    elif session.error_code or session.status != SessionStatus.CANCELLED:
        notices.notify_of_session(session, reason=reason.value)
        if reason in limit_increases.RAISABLE:
            bus_messages.enqueue_review(bus_messages.RAISE, session.pk)


def _belongs_to_collector(session: AutonomousSession) -> bool:
    """Whether a collecting session continues its work: it was delegated, or it has delegated."""
    delegated = session.trigger_kind == TriggerKind.DELEGATED and "collects" not in session.params
    return delegated or queries.has_delegated(session.origin)


def _receipt(session: AutonomousSession) -> dict[str, object]:
    """The receipt, or a short one if a row cannot be read: the session ends in any case."""
    return run_isolated(build_receipt, session, partial(build_short_receipt, session))


def _retry(session: AutonomousSession) -> None:
    """Queue the next attempt, with what the attempts have left; after the last one, quarantine the task.

    A session that has delegated was done: the collecting session continues.
    """
    if queries.spawn_refusal(session.task) is not None or queries.has_delegated(session.origin):
        return
    if session.attempt >= session.task.max_attempts:
        _set_aside(session, reason=session.error_code)
        return
    settings = queries.autonomy_settings()
    seconds = rules.retry_seconds(
        session.attempt,
        base=settings.retry_base_seconds,
        most=settings.retry_most_seconds,
        chance=random.random(),  # noqa: S311  (spreads retries; nothing secret)
    )
    session_start.queue_next_attempt(session, left=_limits_for_retry(session), seconds=seconds)


def _continue_after_window(session: AutonomousSession) -> None:
    """Queue a session that continues this one: it waits until the company's limit no longer pauses its chatbot."""
    if queries.spawn_refusal(session.task) is not None or _belongs_to_collector(session):
        return
    left = queries.limits_left(session, session.frozen_limits)
    left = left.model_copy(update={"wall_seconds": session.frozen_limits.wall_seconds})
    if not rules.is_spent(left):
        session_start.continue_session(session, key=f"window:{session.pk}", limits=left)


def _set_aside(session: AutonomousSession, *, reason: str) -> None:
    notices.notify_of_session(session, reason=notices.SET_ASIDE)
    active = Task.objects.filter(pk=session.task.pk, quarantined_at=None)
    if active.update(quarantined_at=Now(), quarantine_reason=reason[:60]):
        record(AuditEvent.TASK_QUARANTINED, subject=f"task:{session.task.pk}", data={"reason": reason[:60]})
    signals.task_event(session, TaskEvent.DEAD_LETTER, {"error_code": reason[:60]})


def _limits_for_retry(session: AutonomousSession) -> TaskLimits:
    """The next attempt's limits: money and tokens are the occasion's, calls and time start again.

    A delegated session's limits are a share of its parent's, so there only time starts again.
    """
    left, full = queries.budget_left(session), session.frozen_limits
    if session.trigger_kind == TriggerKind.DELEGATED:
        return left.model_copy(update={"wall_seconds": full.wall_seconds})
    return full.model_copy(update={"cost_usd": left.cost_usd, "tokens": left.tokens})
