"""Let sessions in that wait: by priority, then age, as many of a company as it and the installation's setting allow.

Counted in the database under a lock of the company's; a place is held from here until the session ends. Of a lane one
is in at a time, so that nobody holds a place while waiting for a lane. Whoever is let in is owed to the workers by one
message, in the scope of its lane: leases, fencing and heartbeats are the bus's. Owed itself when a session comes into
line, when a place may have become free, and when the company changes what it allows (`owing.owe_admission`).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.conf import settings as house
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
from apps.guard.queries import pauses
from kernel.taint import Taint
from kernel.tenancy import current_tenant_id

_SIGHT = 200
# How soon what is paused is looked at again: a limit's pause ends with its window, and no other event says so.
_PAUSED_SECONDS = 60
# The first of each lane in which nobody is, the best of these first.
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
    """Let in as many as there is room for; returns how many. What an administrator or a reached limit paused stays in
    line and is looked at again every minute. Inside a scope, and last in it."""
    allowed = queries.autonomy_settings()
    if not allowed.enabled or not AutonomousSession.objects.filter(status=SessionStatus.QUEUED).exists():
        return 0
    lock_admission()
    room, let_in, paused = min(allowed.max_concurrent, house.AUTONOMY_SESSIONS) - _inside(), 0, pauses()
    for session, moment in _candidates():
        if let_in >= room:
            break
        if paused.stops(session.task.deployment_id, critical=session.task.critical):
            schedule_admission(f"paused:{current_tenant_id()}", moment + timedelta(seconds=_PAUSED_SECONDS))
        else:
            let_in += _let_in(session)
    return let_in


def _inside() -> int:
    return int(AutonomousSession.objects.filter(admitted_at__isnull=False, ended_at__isnull=True).count())


def _candidates() -> Iterator[tuple[AutonomousSession, datetime]]:
    """In their order, each with the database's time."""
    with connection.cursor() as cursor:
        cursor.execute(_NEXT, {"tenant": current_tenant_id(), "most": _SIGHT})
        found = cursor.fetchall()
    order = [session_id for session_id, _ in found]
    rows = {row.pk: row for row in AutonomousSession.objects.select_related("task").filter(pk__in=order)}
    for session_id, moment in found:
        yield rows[session_id], moment


def _let_in(session: AutonomousSession) -> bool:
    waiting = AutonomousSession.objects.filter(pk=session.pk, status=SessionStatus.QUEUED, admitted_at__isnull=True)
    if not waiting.update(admitted_at=Now()):
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
