"""What ends by itself? Executions whose client fell silent, and verify pauses that nobody answered in time (G12).

A block is no part of it: it ends by a person alone. Each row is claimed under its agent's lock, as a report does, so
that a report that arrives meanwhile wins or loses whole. Called by `apps.safety.upkeep`; safe to run twice.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from django.conf import settings

from apps.safety.enums import ChallengeState, ExecutionStatus, HoldKind, HoldState
from apps.safety.locks import lock_hold, lock_reporting
from apps.safety.models import Execution, Hold
from apps.safety.services.executions import end_execution
from apps.safety.services.holding import end_hold
from kernel.clock import now
from kernel.tenancy import over_rows

_MOST = 200


def end_silent(*, most: int = _MOST) -> int:
    """Call off the executions that were silent for longer than the setting says; returns how many."""
    before = _silent_since()
    idle = Execution.objects.filter(status=ExecutionStatus.RUNNING, last_at__lt=before).select_related("agent")
    return over_rows(idle.order_by("last_at")[:most], partial(_ended, before))


def expire_pauses(*, most: int = _MOST) -> int:
    """End the verify pauses whose challenge ran out, so that no page shows them as if somebody still waited."""
    rows = Hold.objects.filter(
        kind=HoldKind.VERIFY,
        state=HoldState.OPEN,
        challenges__state=ChallengeState.PENDING,
        challenges__expires_at__lte=now(),
    )
    return over_rows(rows.select_related("agent").order_by("created_at")[:most], _expired)


def _silent_since() -> datetime:
    return now() - timedelta(seconds=settings.SAFETY_IDLE_SECONDS)


def _ended(before: datetime, execution: Execution) -> bool:
    lock_reporting(execution.agent.principal, execution.agent.name)
    still = Execution.objects.filter(pk=execution.pk, status=ExecutionStatus.RUNNING, last_at__lt=before).first()
    if still is not None:
        end_execution(still, ExecutionStatus.CANCELLED, actor="system")
    return still is not None


def _expired(hold: Hold) -> bool:
    """A code that was shown meanwhile has made the challenge last longer."""
    lock_reporting(hold.agent.principal, hold.agent.name)
    locked = lock_hold(hold.pk)
    late = hold.challenges.filter(state=ChallengeState.PENDING, expires_at__lte=now())
    if locked is None or locked.state != HoldState.OPEN or not late.exists():
        return False
    end_hold(locked, HoldState.EXPIRED, actor="system")
    return True
