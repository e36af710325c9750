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
from apps.safety.rules import decides, directive
from apps.safety.schemas import Failure, Principal, Reply, Success
from apps.safety.services.holding import close_pauses, refused, standing_pause
from apps.safety.signals import loop_changed
from kernel.clock import now


def execute_agent(principal: Principal, *, name: str) -> Reply:
    """Open an execution. Refused while the principal is blocked or waits for a verification, by any of its names
    (contract safety-loop 12)."""
    _, agent = lock_reporting(principal.ref, name)
    if (block := open_block(principal.ref)) is not None:
        return refused(block, "execute_agent")
    policy = policy_of(principal.ref)
    if decides(policy.mode) and (held := standing_pause(agent)) is not None:
        return refused(held, "execute_agent")
    _end_idle(agent)
    moment = now()
    execution: Execution = Execution.objects.create(agent=agent, started_at=moment, last_at=moment)
    bus.schedule(Kind.SAFETY_EXPIRY, scope_id=execution.pk, due_at=silent_at(execution))
    record(AuditEvent.SAFETY_STARTED, actor=principal.ref, subject=f"safety_execution:{execution.pk}")
    loop_changed(True)
    told = {"max_steps": policy.max_steps, "mode": policy.mode.value, "autonomy": directive(policy.mode, None)}
    return Success(state_of(execution) | told)


def complete_execution(principal: Principal, *, name: str, outcome: str, execution_id: UUID | None = None) -> Reply:
    """The normal end: completed, or failed where its outcome is a failure."""
    _, agent = lock_reporting(principal.ref, name)
    if (block := open_block(principal.ref)) is not None:
        return refused(block, "complete_execution")
    status = ExecutionStatus.FAILED if outcome == "failure" else ExecutionStatus.COMPLETED
    return _ended(agent, execution_id, status)


def abort_execution(principal: Principal, *, name: str, execution_id: UUID | None = None) -> Reply:
    """The other end. A stopped agent may call its execution off, and is stopped as before (G3)."""
    _, agent = lock_reporting(principal.ref, name)
    return _ended(agent, execution_id, ExecutionStatus.CANCELLED)


def _ended(agent: SafetyAgent, execution_id: UUID | None, status: ExecutionStatus) -> Reply:
    found = running_execution(agent, execution_id)
    if found is None:
        return no_execution()
    return Success(state_of(end_execution(found, status, actor=agent.principal)))


def end_execution(found: Execution, status: ExecutionStatus, *, actor: str) -> Execution:
    execution = lock_execution(found.pk)
    moment = now()
    execution.status, execution.finished_at, execution.last_at = status, moment, moment
    execution.save(update_fields=["status", "finished_at", "last_at"])
    # An open verify pause outlives the execution: an agent that ends it does not go around the person.
    close_pauses(execution, HoldKind.CONFIRM)
    loop_changed(True)
    data = {"status": str(status), "steps": execution.steps}
    record(AuditEvent.SAFETY_ENDED, actor=actor, subject=f"safety_execution:{execution.pk}", data=data)
    return execution


def silent_at(execution: Execution) -> datetime:
    """When it is over if nothing more is reported: nobody says goodbye for a client that went away (G12)."""
    return execution.last_at + timedelta(seconds=settings.SAFETY_IDLE_SECONDS)


def _end_idle(agent: SafetyAgent) -> None:
    for each in agent.executions.filter(status=ExecutionStatus.RUNNING):
        if silent_at(each) < now():
            end_execution(each, ExecutionStatus.CANCELLED, actor="system")


def state_of(execution: Execution) -> dict[str, Any]:
    """An execution's state as the wire has it (contract safety-loop 17)."""
    state: dict[str, Any] = {
        "execution_id": str(execution.pk),
        "status": str(execution.status),
        "started_at": execution.started_at.isoformat().replace("+00:00", "Z"),
        "progress": {"current": execution.steps},
    }
    if execution.finished_at is not None:
        state["finished_at"] = execution.finished_at.isoformat().replace("+00:00", "Z")
    return state


def no_execution() -> Failure:
    message = "No execution of this agent runs. Call 'execute_agent' first."
    return Failure("NOT_FOUND_RESOURCE", message, {"resource_type": "execution"})
