"""Admit queued sessions: by priority, then age, up to the limits of the company and the installation.

Counted in the database under a lock of the company; a session occupies a place from admission until it ends. One
session of a lane is admitted at a time, so that none occupies a place while it waits for its lane. An admitted session
is sent to the workers by one message in the scope of its lane; leases, fencing and heartbeats are the bus's. Admission
runs when a session is queued, when a place may be free, and when settings change (`bus_messages.enqueue_admission`).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.conf import settings as installation
from django.db import connection
from django.db.models.functions import Now

from apps.autonomy import queries
from apps.autonomy.enums import SessionStatus
from apps.autonomy.locks import lock_admission
from apps.autonomy.models import AutonomousSession
from apps.autonomy.services.bus_messages import enqueue_dispatch, schedule_admission
from apps.autonomy.services.session_control import schedule_watch
from apps.bus import services as bus
from apps.bus.enums import Kind, Queue, Sender, Urgency
from apps.guard.queries import current_pauses
from kernel.taint import Taint
from kernel.tenancy import current_tenant_id

_MOST_CANDIDATES = 200
# When a paused session is checked again: a pause by a limit ends with its window, and no event announces that.
_PAUSED_SECONDS = 60
# The first session of each free lane, ordered by priority and age.
_NEXT = """
    SELECT id, statement_timestamp() FROM (
        SELECT DISTINCT ON (s.lane) s.id, s.priority, s.queued_at FROM autonomy_autonomoussession s
        WHERE s.tenant_id = %(tenant)s AND s.status = 'queued' AND s.admitted_at IS NULL
          AND s.not_before <= statement_timestamp()
          AND NOT EXISTS (SELECT FROM autonomy_autonomoussession o WHERE o.tenant_id = s.tenant_id AND o.lane = s.lane
                          AND o.admitted_at IS NOT NULL AND o.ended_at IS NULL)
        ORDER BY s.lane, s.priority DESC, s.queued_at, s.id
    ) AS firsts ORDER BY priority DESC, queued_at, id LIMIT %(most)s
"""


def admit_waiting() -> int:
    """Admit as many sessions as there is room for; return how many.

    What an administrator or a reached limit paused stays queued and is checked again every minute. Inside a scope, and
    last in it, because of the lock.
    """
    settings = queries.autonomy_settings()
    if not settings.enabled or not AutonomousSession.objects.filter(status=SessionStatus.QUEUED).exists():
        return 0
    # Counting and admitting under one lock: rivals would both see the last free place.
    lock_admission()
    admitted = AutonomousSession.objects.filter(admitted_at__isnull=False, ended_at__isnull=True).count()
    room = min(settings.max_concurrent, installation.AUTONOMY_SESSIONS) - int(admitted)
    count, paused = 0, current_pauses()
    # Paused sessions are skipped one by one, because critical tasks behind them may run.
    for session, moment in _candidates():
        if count >= room:
            break
        if paused.stops(session.task.deployment_id, critical=session.task.critical):
            schedule_admission(f"paused:{current_tenant_id()}", moment + timedelta(seconds=_PAUSED_SECONDS))
        else:
            count += _admit(session)
    return count


def _candidates() -> Iterator[tuple[AutonomousSession, datetime]]:
    """In admission order, each with the database's time."""
    with connection.cursor() as cursor:
        cursor.execute(_NEXT, {"tenant": current_tenant_id(), "most": _MOST_CANDIDATES})
        candidates = cursor.fetchall()
    ids = [session_id for session_id, _ in candidates]
    sessions = {row.pk: row for row in AutonomousSession.objects.select_related("task").filter(pk__in=ids)}
    for session_id, moment in candidates:
        yield sessions[session_id], moment


def _admit(session: AutonomousSession) -> bool:
    queued = AutonomousSession.objects.filter(pk=session.pk, status=SessionStatus.QUEUED, admitted_at__isnull=True)
    if not queued.update(admitted_at=Now()):
        return False
    message = bus.send_message(
        Queue.EXECUTOR,
        kind=Kind.AUTONOMOUS_SESSION,
        scope_id=session.lane,
        sender=Sender.RUNTIME,
        payload={"session": str(session.pk)},
        taint=Taint.AUTH,
        urgency=Urgency.BACKGROUND,
    )
    AutonomousSession.objects.filter(pk=session.pk).update(message_id=message.pk)
    schedule_watch(session.pk)
    enqueue_dispatch(session)
    return True
