"""Open and end executions (contract safety-loop 6, 17), also those whose client fell silent (G12).

Executions and verify pauses have a recurring job each, due at their deadline. A block has none: only a person ends it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus import services as bus
from apps.bus.enums import Kind
from apps.safety.enums import ExecutionStatus, HoldKind, HoldState
from apps.safety.locks import lock_execution, lock_hold, lock_reporting
from apps.safety.models import Execution, Hold, SafetyAgent
from apps.safety.queries import open_block, pending_challenge, policy_of, running_execution, wire_time
from apps.safety.rules.stages import directive, is_enforcing
from apps.safety.schemas import Failure, Principal, Reply, Success
from apps.safety.services.holds import close_pauses, end_hold, pending_pause, refuse
from apps.safety.signals import loop_changed
from kernel.clock import now


def execute_agent(principal: Principal, *, name: str) -> Reply:
    """Open an execution. Refused while the principal is blocked or waits for a verification, by any of its names
    (contract safety-loop 12)."""
    _, agent = lock_reporting(principal.ref, name)
    if (block := open_block(principal.ref)) is not None:
        return refuse(block, "execute_agent")
    policy = policy_of(principal.ref)
    if is_enforcing(policy.mode) and (pause := pending_pause(agent)) is not None:
        return refuse(pause, "execute_agent")
    moment = now()
    for earlier in agent.executions.filter(status=ExecutionStatus.RUNNING):
        if idle_deadline(earlier) < moment:
            end_execution(earlier, ExecutionStatus.CANCELLED, actor="system")
    execution: Execution = Execution.objects.create(agent=agent, started_at=moment, last_at=moment)
    bus.schedule(Kind.SAFETY_EXPIRY, scope_id=execution.pk, due_at=idle_deadline(execution))
    record(AuditEvent.SAFETY_STARTED, actor=principal.ref, subject=f"safety_execution:{execution.pk}")
    loop_changed(True)
    details = {"max_steps": policy.max_steps, "mode": policy.mode.value, "autonomy": directive(policy.mode, None)}
    return Success(execution_state(execution) | details)


def complete_execution(
    principal: Principal, *, name: str, outcome: str = "", execution_id: UUID | None = None
) -> Reply:
    """End the execution as completed, or as failed when its outcome is a failure."""
    _, agent = lock_reporting(principal.ref, name)
    if (block := open_block(principal.ref)) is not None:
        return refuse(block, "complete_execution")
    status = ExecutionStatus.FAILED if outcome == "failure" else ExecutionStatus.COMPLETED
    return _end_running(agent, execution_id, status)


def abort_execution(principal: Principal, *, name: str, execution_id: UUID | None = None) -> Reply:
    """Cancel the execution. A stopped agent may do this, and remains stopped (G3)."""
    _, agent = lock_reporting(principal.ref, name)
    return _end_running(agent, execution_id, ExecutionStatus.CANCELLED)


def _end_running(agent: SafetyAgent, execution_id: UUID | None, status: ExecutionStatus) -> Reply:
    execution = running_execution(agent, execution_id)
    if execution is None:
        return execution_not_found()
    return Success(execution_state(end_execution(execution, status, actor=agent.principal)))


def end_execution(unlocked: Execution, status: ExecutionStatus, *, actor: str) -> Execution:
    execution = lock_execution(unlocked.pk)
    moment = now()
    execution.status, execution.finished_at, execution.last_at = status, moment, moment
    execution.save(update_fields=["status", "finished_at", "last_at"])
    # An open verify pause outlives the execution, so that an agent cannot escape it by ending the execution.
    close_pauses(execution, HoldKind.CONFIRM)
    loop_changed(True)
    data = {"status": str(status), "steps": execution.steps}
    record(AuditEvent.SAFETY_ENDED, actor=actor, subject=f"safety_execution:{execution.pk}", data=data)
    return execution


def idle_deadline(execution: Execution) -> datetime:
    """Return when the execution is cancelled unless it reports again: a client that crashed never ends it (G12)."""
    return execution.last_at + timedelta(seconds=settings.SAFETY_IDLE_SECONDS)


def end_overdue(subject_id: UUID) -> datetime | None:
    """End the execution or the verify pause of this id if its deadline has passed.

    Returns the deadline when it is still to come, None when there is nothing left to end. Rows are locked after their
    agent, as in a report, so a concurrent report wins or loses as a whole.
    """
    running = Execution.objects.filter(pk=subject_id).select_related("agent").first()
    if running is not None:
        lock_reporting(running.agent.principal, running.agent.name)
        execution = lock_execution(running.pk)
        if execution.status != ExecutionStatus.RUNNING:
            return None
        if (deadline := idle_deadline(execution)) >= now():
            return deadline
        end_execution(execution, ExecutionStatus.CANCELLED, actor="system")
        return None
    pause = Hold.objects.filter(pk=subject_id, kind=HoldKind.VERIFY).select_related("agent").first()
    if pause is None:
        return None
    lock_reporting(pause.agent.principal, pause.agent.name)
    hold = lock_hold(pause.pk)
    challenge = pending_challenge(hold) if hold is not None and hold.state == HoldState.OPEN else None
    if hold is None or challenge is None:
        return None
    # Showing a code extends the challenge, so its time may have moved since the job was scheduled.
    if challenge.expires_at > now():
        return challenge.expires_at
    end_hold(hold, HoldState.EXPIRED, actor="system")
    return None


def execution_state(execution: Execution) -> dict[str, Any]:
    """Serialise the execution's state for the wire (contract safety-loop 17)."""
    state: dict[str, object] = {
        "execution_id": str(execution.pk),
        "status": str(execution.status),
        "started_at": wire_time(execution.started_at),
        "progress": {"current": execution.steps},
    }
    if execution.finished_at is not None:
        state["finished_at"] = wire_time(execution.finished_at)
    return state


def execution_not_found() -> Failure:
    message = "No execution of this agent runs. Call 'execute_agent' first."
    return Failure("NOT_FOUND_RESOURCE", message, {"resource_type": "execution"})
