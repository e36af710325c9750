"""Start the sessions for which a trigger is due, by the clock or because something happened.

A trigger's next time is computed first and stored with the session in one transaction, so that neither a crash nor a
second delivery starts it twice. Missed times become one session, and so do all occurrences that no session has taken
yet. A trigger that cannot be read is disabled.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db import connection
from django.db.models.functions import Now

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.autonomy import queries
from apps.autonomy.enums import TIMED, SessionStatus, SpawnRefusal, TriggerKind
from apps.autonomy.models import AutonomousSession, Occurrence, Trigger
from apps.autonomy.schemas import Occasion
from apps.autonomy.services import notices, session_start
from apps.autonomy.services.trigger_schedule import next_due
from apps.bus import services as bus
from apps.bus.schemas import Lease
from kernel import fault_points
from kernel.errors import SilasError
from kernel.tenancy import current_tenant_id

_MOST_SUBJECTS = 50
_TAKE_OCCURRENCES = """
    WITH gone AS (DELETE FROM autonomy_occurrence WHERE tenant_id = %s AND trigger_id = %s RETURNING *)
    SELECT id, subject FROM gone ORDER BY created_at, id
"""


def dispatch_trigger(trigger_id: UUID, lease: Lease) -> datetime | None:
    """Start what this trigger is due for; return when it is due next by the clock, None for never."""
    rows = Trigger.objects.select_for_update(of=("self",), no_key=True).select_related("task")
    trigger = rows.filter(pk=trigger_id).annotate(moment=Now()).first()
    if trigger is None:
        return None
    if trigger.kind in TIMED:
        return _run_schedule(trigger, trigger.moment)
    bus.ack_duplicates(lease)
    _run_occurrences(trigger)
    return None


def _run_schedule(trigger: Trigger, moment: datetime) -> datetime | None:
    """`moment` is the database's time: a worker with a slow clock would find the same time due again and again."""
    due_at = trigger.next_at
    if due_at is None or due_at > moment or not trigger.enabled or trigger.deleted_at is not None:
        return due_at if trigger.enabled and trigger.deleted_at is None else None
    task = trigger.task
    stopped = task.deleted_at is not None or task.quarantined_at is not None
    next_at = None if stopped else next_due(trigger, after=moment, zone=queries.tenant_timezone())
    Trigger.objects.filter(pk=trigger.pk).update(next_at=next_at, last_at=Now())
    # A session that is still queued covers this time too.
    if not _has_queued_session(trigger):
        params = {"due_at": due_at.isoformat(), "since": _iso(trigger.last_at)}
        _spawn(trigger, Occasion(f"{trigger.pk}:{due_at.isoformat()}", params))
    fault_points.reach("autonomy.dispatched")
    return next_at


def _run_occurrences(trigger: Trigger) -> None:
    """Start one session for all occurrences of this trigger.

    While such a session is still queued, occurrences are kept and dispatched when it is admitted.
    """
    if _has_queued_session(trigger):
        return
    with connection.cursor() as cursor:
        cursor.execute(_TAKE_OCCURRENCES, [current_tenant_id(), trigger.pk])
        taken = cursor.fetchall()
    if not taken:
        return
    # Each subject once, in the order in which they occurred.
    subjects = list(dict.fromkeys(subject for _, subject in taken if subject))
    Trigger.objects.filter(pk=trigger.pk).update(last_at=Now())
    if trigger.deleted_at is not None or not trigger.enabled:
        session_start.record_refusal(
            trigger.task, TriggerKind(trigger.kind), SpawnRefusal.TRIGGER_OFF, times=len(taken)
        )
        return
    params = {"occurrences": len(taken), "subjects": subjects[:_MOST_SUBJECTS], "since": _iso(trigger.last_at)}
    _spawn(trigger, Occasion(f"{trigger.pk}:{taken[0][0]}", params), after=subjects[-1] if subjects else None)


def _spawn(trigger: Trigger, occasion: Occasion, *, after: str | None = None) -> None:
    """Queue the session. One that follows another task's session (`after`) runs within what that one has left."""
    parent = None
    if trigger.kind == TriggerKind.CHAIN and after is not None:
        parent = AutonomousSession.objects.select_related("run").filter(pk=after).first()
    with_context = parent is not None and bool(trigger.spec.get("with_context", True))
    session_start.spawn(
        trigger.task,
        kind=TriggerKind(trigger.kind),
        occasion=occasion,
        requested_by=f"trigger:{trigger.pk}",
        trigger=trigger,
        parent=parent,
        context=parent.output if parent is not None and with_context else "",
    )


def _has_queued_session(trigger: Trigger) -> bool:
    queued = AutonomousSession.objects.filter(trigger=trigger, status=SessionStatus.QUEUED, admitted_at__isnull=True)
    return bool(queued.exists())


def disable_unreadable_trigger(trigger_id: UUID, error: Exception) -> None:
    """Disable the trigger with the reason, until a member repairs it or its task; its occurrences are deleted."""
    trigger = Trigger.objects.select_related("task").filter(pk=trigger_id).first()
    if trigger is not None:
        Occurrence.objects.filter(trigger=trigger).delete()
        disable_trigger(trigger, reason=error.code if isinstance(error, SilasError) else type(error).__name__)


def disable_trigger(trigger: Trigger, *, reason: str) -> None:
    """Disable it and notify its owner. Of rivals, one disables it, so the owner is told once."""
    on = Trigger.objects.filter(pk=trigger.pk, enabled=True)
    if not on.update(enabled=False, disabled_reason=reason[:60], next_at=None):
        return
    notices.notify_of_trigger(trigger, reason=reason)
    data = {"reason": reason[:60], "task": str(trigger.task_id)}
    record(AuditEvent.TRIGGER_DISABLED, subject=f"trigger:{trigger.pk}", data=data)


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
