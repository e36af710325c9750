"""End executions whose client fell silent, and verify pauses that nobody answered in time (G12).

Each has a standing message, due at its time. A block has none: it ends by a person alone. Rows are locked after their
agent, as a report does, so that a report that arrives meanwhile wins or loses whole.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from apps.safety.enums import ExecutionStatus, HoldKind, HoldState
from apps.safety.locks import lock_execution, lock_hold, lock_reporting
from apps.safety.models import Execution, Hold
from apps.safety.queries import pending_challenge
from apps.safety.services.executions import end_execution, silent_at
from apps.safety.services.holding import end_hold
from kernel.clock import now


def end_late(subject_id: UUID) -> datetime | None:
    """End the execution or the pause of this id if its time is up; else return when it is, None where it is over."""
    execution = Execution.objects.filter(pk=subject_id).select_related("agent").first()
    if execution is not None:
        return _end_silent(execution)
    hold = Hold.objects.filter(pk=subject_id, kind=HoldKind.VERIFY).select_related("agent").first()
    return None if hold is None else _expire(hold)


def _end_silent(found: Execution) -> datetime | None:
    """Called off when it was silent for longer than the setting says."""
    lock_reporting(found.agent.principal, found.agent.name)
    execution = lock_execution(found.pk)
    if execution.status != ExecutionStatus.RUNNING:
        return None
    if silent_at(execution) >= now():
        return silent_at(execution)
    end_execution(execution, ExecutionStatus.CANCELLED, actor="system")
    return None


def _expire(found: Hold) -> datetime | None:
    """A code that was shown meanwhile has made the challenge last longer."""
    lock_reporting(found.agent.principal, found.agent.name)
    hold = lock_hold(found.pk)
    challenge = pending_challenge(hold) if hold is not None and hold.state == HoldState.OPEN else None
    if hold is None or challenge is None:
        return None
    if challenge.expires_at > now():
        return challenge.expires_at
    end_hold(hold, HoldState.EXPIRED, actor="system")
    return None
