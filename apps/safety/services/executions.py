"""Open and end executions (contract safety-loop 6, 17)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus import services as bus
from apps.bus.enums import Kind
from apps.safety.enums import ExecutionStatus, HoldKind
from apps.safety.locks import lock_execution, lock_reporting
from apps.safety.models import Execution, SafetyAgent
from apps.safety.queries import open_block, policy_of, running_execution
from apps.safety.rules import directive, is_enforcing
from apps.safety.schemas import Failure, Principal, Reply, Success
from apps.safety.services.holds import close_pauses, pending_pause, refuse
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
    _end_idle_executions(agent)
    moment = now()
    execution: Execution = Execution.objects.create(agent=agent, started_at=moment, last_at=moment)
    bus.schedule(Kind.SAFETY_EXPIRY, scope_id=execution.pk, due_at=idle_deadline(execution))
    record(AuditEvent.SAFETY_STARTED, actor=principal.ref, subject=f"safety_execution:{execution.pk}")
    loop_changed(True)
    details = {"max_steps": policy.max_steps, "mode": policy.mode.value, "autonomy": directive(policy.mode, None)}
    return Success(execution_state(execution) | details)


def complete_execution(principal: Principal, *, name: str, outcome: str, execution_id: UUID | None = None) -> Reply:
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


def _end_idle_executions(agent: SafetyAgent) -> None:
    for execution in agent.executions.filter(status=ExecutionStatus.RUNNING):
        if idle_deadline(execution) < now():
            end_execution(execution, ExecutionStatus.CANCELLED, actor="system")


def execution_state(execution: Execution) -> dict[str, Any]:
    """Serialise the execution's state for the wire (contract safety-loop 17)."""
    state: dict[str, Any] = {
        "execution_id": str(execution.pk),
        "status": str(execution.status),
        "started_at": execution.started_at.isoformat().replace("+00:00", "Z"),
        "progress": {"current": execution.steps},
    }
    if execution.finished_at is not None:
        state["finished_at"] = execution.finished_at.isoformat().replace("+00:00", "Z")
    return state


def execution_not_found() -> Failure:
    message = "No execution of this agent runs. Call 'execute_agent' first."
    return Failure("NOT_FOUND_RESOURCE", message, {"resource_type": "execution"})
