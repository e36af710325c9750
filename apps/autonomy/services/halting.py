"""How is a session stopped, and who notices one that nobody carries on?

A halt is answered at once and takes effect at the next tool boundary; what waits in line is called off. Nothing here
asks whether anybody opted in. The watch sees a session as idle only when no call of it is under way, and ends one that
is beyond its time whatever its worker does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from django.db import connection

from apps.autonomy import queries
from apps.autonomy.enums import SessionStatus, TriggerKind
from apps.autonomy.locks import lock_session
from apps.autonomy.models import AutonomousSession, Task
from apps.autonomy.services.ending import LATE, LOST, Ending, end
from apps.autonomy.services.warning import warn
from apps.bus import services as bus
from apps.guard import services as guard
from apps.guard.enums import TerminalReason
from apps.tenants.enums import Capability
from apps.tenants.queries import require_role
from apps.tenants.rules import roles_with
from kernel.tenancy import current_tenant_id, tried

_GRACE_SECONDS = 30
MAY_HALT = roles_with(Capability.ANSWER)
# Running, although its message is neither waiting nor held any more: nobody will ever end it.
_ORPHANS = """
    SELECT s.id FROM autonomy_autonomoussession s
    WHERE s.tenant_id = %s AND s.admitted_at IS NOT NULL AND s.ended_at IS NULL
      AND s.admitted_at < statement_timestamp() - interval '5 seconds'
      AND NOT EXISTS (SELECT FROM bus_queuemessage m WHERE m.id = s.message_id AND m.state IN ('queued', 'leased'))
"""
# A row whose limits cannot be read has none here: it keeps nobody else from being looked after.
_WALL = "CASE WHEN jsonb_typeof(r.limits->'wall_seconds') = 'number' THEN (r.limits->>'wall_seconds')::float END"
# Too long in all, or nothing begun or ended for longer than the company allows while no call is under way.
_STUCK = f"""
    SELECT s.id, CASE WHEN late THEN 'budget_wall_clock' ELSE 'idle_timeout' END
    FROM autonomy_autonomoussession s JOIN guard_guardedrun r ON r.id = s.run_id
    CROSS JOIN LATERAL (
        SELECT coalesce(max(greatest(c.created_at, c.settled_at)), r.started_at) AS last_at,
               coalesce(bool_or(c.state = 'admitted'), false) AS busy
        FROM guard_toolcall c WHERE c.run_id = r.id) AS calls
    CROSS JOIN LATERAL (
        SELECT coalesce({_WALL} + %(grace)s
                        < extract(epoch FROM statement_timestamp() - r.started_at), false) AS late) AS clock
    WHERE s.tenant_id = %(tenant)s AND s.status = 'running' AND s.halt_reason = ''
      AND (late OR (NOT calls.busy AND greatest(calls.last_at, s.heartbeat_at)
                    < statement_timestamp() - make_interval(secs => %(idle)s)))
"""  # noqa: S608  (our own words)
# Asked to stop, beyond its time, and still not over: its worker hangs.
_OVERDUE = f"""
    SELECT s.id FROM autonomy_autonomoussession s JOIN guard_guardedrun r ON r.id = s.run_id
    WHERE s.tenant_id = %(tenant)s AND s.status = 'running' AND s.halt_reason <> ''
      AND {_WALL} + %(grace)s < extract(epoch FROM statement_timestamp() - r.started_at)
"""  # noqa: S608  (our own words)


def halt_session(session_id: UUID, *, user: Any) -> bool:
    """Ask a session to stop; False when it is stopping or over. Raises `NotFound`, and 403 for a viewer."""
    require_role(user, MAY_HALT)
    return stop(session_id, reason=TerminalReason.EXTERNAL_HALT, actor=user.actor)


def stop_all(task: Task, *, actor: str) -> int:
    """Ask every session of a task to stop; returns how many are."""
    under_way = AutonomousSession.objects.filter(task=task, ended_at=None).order_by("pk").values_list("pk", flat=True)
    return sum(stop(each, reason=TerminalReason.EXTERNAL_HALT, actor=actor) for each in list(under_way))


def stop(session_id: UUID, *, reason: TerminalReason, actor: str) -> bool:
    session = lock_session(session_id)
    if session.is_over:
        return _stop_asked(session, reason=reason, actor=actor)
    if session.run_id is None or session.status == SessionStatus.AWAITING_APPROVAL:
        end(session, Ending(SessionStatus.CANCELLED, TerminalReason.CANCELLED), actor=actor)
        return True
    _stop_asked(session, reason=reason, actor=actor)
    if not guard.halt(session.run_id, reason=reason, actor=actor):
        return False
    AutonomousSession.objects.filter(pk=session.pk).update(halt_reason=reason)
    return True


def _stop_asked(session: AutonomousSession, *, reason: TerminalReason, actor: str) -> bool:
    """Those among whom it divided what it had left, and the one that collects, which then never begins."""
    rows = session.children.filter(trigger_kind=TriggerKind.DELEGATED, ended_at=None).order_by("pk")
    stopped = [stop(child, reason=reason, actor=actor) for child in rows.values_list("pk", flat=True)]
    if stopped:
        AutonomousSession.objects.filter(pk=session.pk).update(halt_reason=reason)
    return any(stopped)


def watch() -> int:
    """Stop what is idle, and end what is beyond its time or what nobody carries on; returns how many. Inside a scope,
    safe to run twice. One that cannot be ended does not keep the others from it."""
    orphans = _rows(_ORPHANS, [current_tenant_id()])
    for (session_id,) in orphans:
        _quietly(session_id, _lost)
    values = {"tenant": current_tenant_id(), "grace": _GRACE_SECONDS, "idle": queries.settings_of().idle_seconds}
    overdue = _rows(_OVERDUE, values)
    for (session_id,) in overdue:
        _quietly(session_id, _end_overdue)
    stuck = _rows(_STUCK, values)
    for session_id, reason in stuck:
        _quietly(session_id, _stop_for(reason))
    warn()
    return len(orphans) + len(overdue) + len(stuck)


def _lost(session_id: UUID) -> None:
    end(lock_session(session_id), LOST)


def _end_overdue(session_id: UUID) -> None:
    """Its worker hangs: the session ends here, with its receipt, and holds no place and no lane any more. Whatever the
    worker still says of it is refused, because it has lost its lease."""
    session = lock_session(session_id)
    if session.message_id is not None:
        bus.revoke(session.message_id)
    end(session, LATE)


def _stop_for(reason: str) -> Callable[[UUID], object]:
    return partial(stop, reason=TerminalReason(reason), actor="system")


def _quietly(session_id: UUID, step: Callable[[UUID], object]) -> None:
    tried(step, session_id, lambda _: None)


def _rows(statement: str, values: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())
