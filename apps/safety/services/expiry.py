"""End executions whose client fell silent, and verify pauses that were not answered in time (G12).

Each has a recurring job, due at its deadline. A block has none: only a person ends it. Rows are locked after their
agent, as in a report, so a concurrent report wins or loses as a whole.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from apps.safety.enums import ExecutionStatus, HoldKind, HoldState
from apps.safety.locks import lock_execution, lock_hold, lock_reporting
from apps.safety.models import Execution, Hold
from apps.safety.queries import pending_challenge
from apps.safety.services.executions import end_execution, idle_deadline
from apps.safety.services.holds import end_hold
from kernel.clock import now


def end_overdue(subject_id: UUID) -> datetime | None:
    """End the execution or the pause of this id if its deadline has passed.

    Returns the deadline when it is still to come, None when there is nothing left to end.
    """
    execution = Execution.objects.filter(pk=subject_id).select_related("agent").first()
    if execution is not None:
        return _cancel_if_idle(execution)
    hold = Hold.objects.filter(pk=subject_id, kind=HoldKind.VERIFY).select_related("agent").first()
    return None if hold is None else _expire_pause(hold)


def _cancel_if_idle(unlocked: Execution) -> datetime | None:
    lock_reporting(unlocked.agent.principal, unlocked.agent.name)
    execution = lock_execution(unlocked.pk)
    if execution.status != ExecutionStatus.RUNNING:
        return None
    if idle_deadline(execution) >= now():
        return idle_deadline(execution)
    end_execution(execution, ExecutionStatus.CANCELLED, actor="system")
    return None


def _expire_pause(unlocked: Hold) -> datetime | None:
    lock_reporting(unlocked.agent.principal, unlocked.agent.name)
    hold = lock_hold(unlocked.pk)
    challenge = pending_challenge(hold) if hold is not None and hold.state == HoldState.OPEN else None
    if hold is None or challenge is None:
        return None
    # Showing a code extends the challenge, so its time may have moved since the job was scheduled.
    if challenge.expires_at > now():
        return challenge.expires_at
    end_hold(hold, HoldState.EXPIRED, actor="system")
    return None
