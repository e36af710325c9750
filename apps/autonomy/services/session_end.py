"""End a session, whatever happened: once, with a status, a reason from the closed list, and a stored receipt.

The run is closed, the session's row written and everybody told in one transaction. After a fault of the machine the
same occasion is queued again, as a new session; after the last attempt the task is set aside with the reason. A brake
is no fault and is never tried again.
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
_RUN = {SessionStatus.COMPLETED: RunStatus.COMPLETED, SessionStatus.HALTED: RunStatus.HALTED}
_BUDGETS = frozenset(
    {
        TerminalReason.COST_CAP_REACHED,
        TerminalReason.BUDGET_TOKENS,
        TerminalReason.BUDGET_TOOL_CALLS,
        TerminalReason.BUDGET_WALL_CLOCK,
        TerminalReason.GLOBAL_DAILY,
        TerminalReason.GLOBAL_MONTHLY,
    }
)


@dataclass(frozen=True)
class Ending:
    """`fault` says that the machine failed, not the task: it is tried again. `outcome` is what the phase that was under
    way came to, `state` what it leaves to a session that goes on; `awaits` the work that a person is asked about."""

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
    """End the locked session; one that is over stays as it ended."""
    if session.is_over:
        return
    ending = _as_halted(session, ending)
    _leave_phase(session, ending)
    _close_run(session, ending)
    if ending.awaits:
        decided = _decided(UUID(ending.awaits))
        if decided is None:
            _park(session, ending)
            return
        ending = _as_decided(ending, approved=decided)
    session.status, session.terminal_reason = ending.status, ending.reason
    session.error_code, session.output = ending.error_code[:60], ending.output
    session.ended_at = _moment(session)
    session.receipt = _receipt(session)
    session.save(update_fields=["status", "terminal_reason", "error_code", "output", "ended_at", "receipt", "phase"])
    data = {"status": session.status, "reason": session.terminal_reason, "attempt": session.attempt}
    record(AuditEvent.AUTONOMOUS_ENDED, actor=actor, subject=f"autonomous:{session.pk}", data=data)
    _make_room(session)
    _tell(session)
    if ending.fault:
        _try_again_or_set_aside(session)


def _as_halted(session: AutonomousSession, ending: Ending) -> Ending:
    """What somebody stopped stays stopped: the machine's fault on the way there is no reason to begin it again."""
    if not (session.halt_reason and (ending.fault or ending is LATE)):
        return ending
    return replace(ending, status=SessionStatus.HALTED, reason=TerminalReason(session.halt_reason), fault=False)


def _park(session: AutonomousSession, ending: Ending) -> None:
    """All is done but a person's answer about work it led to: it holds no place and no lane meanwhile."""
    session.status, session.awaits, session.admitted_at = SessionStatus.AWAITING_APPROVAL, UUID(ending.awaits), None
    session.output, session.receipt = ending.output, _receipt(session)
    session.save(update_fields=["status", "awaits", "admitted_at", "output", "receipt", "phase"])
    record(AuditEvent.AUTONOMOUS_PARKED, subject=f"autonomous:{session.pk}", data={"work": ending.awaits})
    bus_messages.enqueue_admission()


def _make_room(session: AutonomousSession) -> None:
    """Its place is free, and so is a collecting session to begin if it was the last of those that were asked."""
    bus_messages.enqueue_admission()
    if session.admitted_at is None:
        bus_messages.enqueue_dispatch(session)


def approval_in_status(status: str) -> bool | None:
    """What work that stands like this says of the yes it needed: given, not given, or still asked for."""
    if status == WorkItemStatus.RUNNING or status in work_rules.FINAL:
        return status in (WorkItemStatus.RUNNING, WorkItemStatus.DONE)
    return None


def _decided(work_item_id: UUID) -> bool | None:
    """As it stands once whoever is deciding now has committed: their answer finds no session that waits yet."""
    rows = WorkItem.objects.select_for_update(no_key=True).filter(pk=work_item_id)
    status = rows.values_list("status", flat=True).first()
    return False if status is None else approval_in_status(status)


def _as_decided(ending: Ending, *, approved: bool) -> Ending:
    status = SessionStatus.COMPLETED if approved else SessionStatus.CANCELLED
    reason = TerminalReason.COMPLETED if approved else TerminalReason.APPROVAL_MISSING
    return replace(ending, status=status, reason=reason, awaits="")


def end_waiting_sessions(work_item_id: UUID, *, approved: bool) -> None:
    """A person has decided about the work that sessions wait for."""
    waiting = AutonomousSession.objects.filter(status=SessionStatus.AWAITING_APPROVAL, awaits=work_item_id)
    for session in waiting.select_for_update(of=("self",), no_key=True).select_related("task", "run"):
        good = Ending(SessionStatus.COMPLETED, TerminalReason.COMPLETED, output=session.output)
        end(session, _as_decided(good, approved=approved))


def _moment(session: AutonomousSession) -> datetime:
    """The database's time, by which everything of a session is measured."""
    moment: datetime = (
        AutonomousSession.objects.annotate(moment=Now()).values_list("moment", flat=True).get(pk=session.pk)
    )
    return moment


def _leave_phase(session: AutonomousSession, ending: Ending) -> None:
    """A phase that was under way came to this; one that was left before keeps what it said. A clock that
    was set back keeps no session from ending."""
    said = ending.outcome or ending.reason.value
    kept = {} if ending.state is None else {"state": dict(ending.state)}
    open_one = Checkpoint.objects.filter(session=session, left_at=None)
    open_one.update(left_at=Greatest(Now(), F("entered_at")), outcome=said[:60], **kept)


def _close_run(session: AutonomousSession, ending: Ending) -> None:
    if session.run_id is None:
        return
    guard.give_up_calls(session.run_id)
    guard.close_run(session.run_id, status=_RUN.get(ending.status, RunStatus.FAILED), reason=ending.reason)
    session.run = GuardedRun.objects.get(pk=session.run_id)
    session.phase = session.run.phase


def _tell(session: AutonomousSession) -> None:
    reason = TerminalReason(session.terminal_reason)
    if reason in _BUDGETS:
        signals.task_event(session, TaskEvent.BUDGET_EXCEEDED, {"limit": reason.value})
    data = {"reason": reason.value, "error_code": session.error_code}
    signals.task_event(session, _EVENTS[SessionStatus(session.status)], data)
    signals.session_ended(session)
    if _is_part(session):
        return
    if session.status == SessionStatus.COMPLETED:
        record_occurrence(f"chain:{session.task_id}", str(session.pk))
    elif session.error_code or session.status != SessionStatus.CANCELLED:
        _tell_owner(session, reason)


def _tell_owner(session: AutonomousSession, reason: TerminalReason) -> None:
    """Every end but a good one, and one that a person chose before it began. A web process asks whether a limit of the
    session's own shall be raised."""
    notices.notify_of_session(session, reason=reason.value)
    if reason in limit_increases.RAISABLE:
        bus_messages.enqueue_review(bus_messages.RAISE, session.pk)


def _is_part(session: AutonomousSession) -> bool:
    """Its result is for the session that collects; what it left is not its own to pass on."""
    asked = session.trigger_kind == TriggerKind.DELEGATED and "collects" not in session.params
    return asked or queries.has_delegated(session.origin)


def _receipt(session: AutonomousSession) -> dict[str, Any]:
    """A row that cannot be read makes a short receipt; it keeps no session from ending."""
    return run_isolated(build_receipt, session, partial(build_short_receipt, session))


def _try_again_or_set_aside(session: AutonomousSession) -> None:
    """A task whose rows cannot be read is not tried again: a person has to look."""
    run_isolated(_try_again, session, lambda error: _set_aside(session, reason=type(error).__name__))


def _try_again(session: AutonomousSession) -> None:
    """Inside what the attempts have left, a little later; or the task is set aside. One that has divided what it had
    left was done: what follows is for the session that collects."""
    if queries.spawn_refusal(session.task) is not None or queries.has_delegated(session.origin):
        return
    if session.attempt >= session.task.max_attempts:
        _set_aside(session, reason=session.error_code)
        return
    allowed = queries.autonomy_settings()
    seconds = rules.retry_seconds(
        session.attempt,
        base=allowed.retry_base_seconds,
        most=allowed.retry_most_seconds,
        chance=random.random(),  # noqa: S311  (spreads retries; nothing secret)
    )
    session_start.queue_next_attempt(session, left=_left(session), seconds=seconds)


def _set_aside(session: AutonomousSession, *, reason: str) -> None:
    notices.notify_of_session(session, reason=notices.SET_ASIDE)
    _quarantine(session.task, reason=reason)
    signals.task_event(session, TaskEvent.DEAD_LETTER, {"error_code": reason[:60]})


def _quarantine(task: Task, *, reason: str) -> None:
    """It failed too often: nothing of it begins until a person has looked."""
    fresh = Task.objects.filter(pk=task.pk, quarantined_at=None)
    if fresh.update(quarantined_at=Now(), quarantine_reason=reason[:60]):
        record(AuditEvent.TASK_QUARANTINED, subject=f"task:{task.pk}", data={"reason": reason[:60]})


def _left(session: AutonomousSession) -> TaskLimits:
    """Money and model tokens are the occasion's; calls and time each attempt needs anew. Of what another session gave,
    all is counted."""
    left, fresh = queries.budget_left(session), session.frozen_limits
    if session.trigger_kind == TriggerKind.DELEGATED:
        return left.model_copy(update={"wall_seconds": fresh.wall_seconds})
    return fresh.model_copy(update={"cost_usd": left.cost_usd, "tokens": left.tokens})
