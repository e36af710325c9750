"""Halt sessions, and check running ones for lost workers, idleness and overrun.

A halt is answered at once and takes effect at the next tool boundary; a queued session is canceled. Nothing here
requires an opt-in. The check takes a session for idle only when no call of it is under way, and ends one that has
exceeded its time, even if its worker is still running. It is a recurring message of each admitted session, due when the
session may first be idle, near its time limit, or beyond it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection

from apps.autonomy import queries
from apps.autonomy.enums import SessionStatus, TriggerKind
from apps.autonomy.locks import lock_session
from apps.autonomy.models import AutonomousSession, Task
from apps.autonomy.services.limit_warnings import PERCENT, warn_if_near_limit
from apps.autonomy.services.session_end import LATE, LOST, Ending, end
from apps.bus import services as bus
from apps.bus.enums import Kind
from apps.bus.queries import is_live
from apps.guard import services as guard
from apps.guard.enums import TerminalReason
from apps.tenants.enums import Capability
from apps.tenants.models import User
from apps.tenants.queries import require_role
from apps.tenants.rules import roles_with

# How far beyond its time a session is late, and how long it then has to reach its next tool boundary.
_GRACE_SECONDS, _BOUNDARY_SECONDS = 30, 15
MAY_HALT = roles_with(Capability.ANSWER)
# A time limit that cannot be read counts as none.
_CLOCK = """
    SELECT statement_timestamp(), r.started_at, calls.busy,
           coalesce(greatest(calls.last_at, s.heartbeat_at), s.admitted_at),
           CASE WHEN jsonb_typeof(r.limits->'wall_seconds') = 'number' THEN (r.limits->>'wall_seconds')::float END
    FROM autonomy_autonomoussession s LEFT JOIN guard_guardedrun r ON r.id = s.run_id
    CROSS JOIN LATERAL (
        SELECT coalesce(max(greatest(c.created_at, c.settled_at)), r.started_at) AS last_at,
               coalesce(bool_or(c.state = 'admitted'), false) AS busy
        FROM guard_toolcall c WHERE c.run_id = r.id) AS calls
    WHERE s.id = %s
"""


def halt_session(session_id: UUID, *, user: User) -> bool:
    """Ask a session to stop; False when it is stopping or over. Raises `NotFound`, and 403 for a viewer."""
    require_role(user, MAY_HALT)
    return stop_session(session_id, reason=TerminalReason.EXTERNAL_HALT, actor=user.actor)


def stop_all(task: Task, *, actor: str) -> int:
    """Ask every session of a task to stop; return how many will."""
    under_way = AutonomousSession.objects.filter(task=task, ended_at=None).order_by("pk").values_list("pk", flat=True)
    return sum(stop_session(pk, reason=TerminalReason.EXTERNAL_HALT, actor=actor) for pk in list(under_way))


def stop_session(session_id: UUID, *, reason: TerminalReason, actor: str) -> bool:
    session = lock_session(session_id)
    if session.is_over:
        # The session itself is over, but those to which it delegated may run.
        return _stop_delegated(session, reason=reason, actor=actor)
    if session.run_id is None or session.status == SessionStatus.AWAITING_APPROVAL:
        end(session, Ending(SessionStatus.CANCELLED, TerminalReason.CANCELLED), actor=actor)
        return True
    _stop_delegated(session, reason=reason, actor=actor)
    if not guard.halt(session.run_id, reason=reason, actor=actor):
        return False
    AutonomousSession.objects.filter(pk=session.pk).update(halt_reason=reason)
    return True


def end_at_once(session_id: UUID, *, actor: str) -> None:
    """End a session without waiting for its next tool boundary: what its worker reports later is refused."""
    session = lock_session(session_id)
    _stop_delegated(session, reason=TerminalReason.EXTERNAL_HALT, actor=actor)
    if session.status == SessionStatus.RUNNING:
        _revoke(session)
        end(session, Ending(SessionStatus.HALTED, TerminalReason.EXTERNAL_HALT), actor=actor)
    else:
        end(session, Ending(SessionStatus.CANCELLED, TerminalReason.CANCELLED), actor=actor)


def _stop_delegated(session: AutonomousSession, *, reason: TerminalReason, actor: str) -> bool:
    """Stop the sessions to which it delegated; with a halt reason, its collecting session never starts."""
    rows = session.children.filter(trigger_kind=TriggerKind.DELEGATED, ended_at=None).order_by("pk")
    stopped = [stop_session(child, reason=reason, actor=actor) for child in rows.values_list("pk", flat=True)]
    if stopped:
        AutonomousSession.objects.filter(pk=session.pk).update(halt_reason=reason)
    return any(stopped)


@dataclass(frozen=True)
class _Clock:
    """When an admitted session started and last did something, by the database's clock.

    `busy`: a call of it is under way; `wall_seconds`: its time limit.
    """

    moment: datetime
    started_at: datetime | None
    busy: bool
    last_at: datetime
    wall_seconds: float | None

    @property
    def is_late(self) -> bool:
        ends_at = self._after(1, _GRACE_SECONDS)
        return ends_at is not None and ends_at <= self.moment

    def is_idle(self, idle: timedelta) -> bool:
        return self.started_at is not None and not self.busy and self.last_at + idle <= self.moment

    def next_look(self, idle: timedelta) -> datetime:
        """When to check next: at four fifths of its time for the warning, when it is late, or when it may be idle."""
        times = [self._after(PERCENT / 100, 0), self._after(1, _GRACE_SECONDS), self.last_at + idle]
        return min((time for time in times if time is not None and time > self.moment), default=self.moment + idle)

    def _after(self, share: float, seconds: float) -> datetime | None:
        if self.started_at is None or self.wall_seconds is None:
            return None
        return self.started_at + timedelta(seconds=share * self.wall_seconds + seconds)


def check_session(session_id: UUID) -> datetime | None:
    """Check an admitted session; return when to check again, None once it is over or no longer admitted.

    Ends it when its worker is lost, or when it is beyond its time and does not stop; asks it to stop when it is beyond
    its time or idle.
    """
    if not AutonomousSession.objects.filter(pk=session_id).exists():
        return None
    session = lock_session(session_id)
    if session.is_over or session.admitted_at is None:
        return None
    if not is_live(session.message_id):
        end(session, LOST)
        return None
    warn_if_near_limit(session_id)
    clock, idle = _clock_of(session_id), _idle()
    if clock.is_late and session.halt_reason:
        _end_overdue(session)
        return None
    if not session.halt_reason and (clock.is_late or clock.is_idle(idle)):
        reason = TerminalReason.BUDGET_WALL_CLOCK if clock.is_late else TerminalReason.IDLE_TIMEOUT
        stop_session(session_id, reason=reason, actor="system")
        return clock.moment + timedelta(seconds=_BOUNDARY_SECONDS)
    return clock.next_look(idle)


def schedule_watch(session_id: UUID) -> None:
    """Schedule the session's next check: at its admission, and again when it starts."""
    due_at = _clock_of(session_id).next_look(_idle())
    bus.schedule(Kind.SESSION_WATCH, scope_id=session_id, due_at=due_at)


def _clock_of(session_id: UUID) -> _Clock:
    with connection.cursor() as cursor:
        cursor.execute(_CLOCK, [session_id])
        return _Clock(*cursor.fetchone())


def _idle() -> timedelta:
    return timedelta(seconds=queries.autonomy_settings().idle_seconds)


def _end_overdue(session: AutonomousSession) -> None:
    """End a session whose worker hangs, with its receipt, so that its place and lane are free.

    Later reports of the worker are refused, because it has lost its lease.
    """
    _revoke(session)
    end(session, LATE)


def _revoke(session: AutonomousSession) -> None:
    if session.message_id is not None:
        bus.revoke(session.message_id)
