"""The transactions around a running session: begin it, enter each phase, conclude it. In a worker.

A redelivered message replays nothing: the session of the lost worker ends as `worker_lost`, and the occasion is queued
again. Each phase is entered in a short transaction of its own, which the guard and the audit log record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from django.db.models import F
from django.db.models.functions import Greatest, Now

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.autonomy import queries, rules, signals
from apps.autonomy.enums import SessionStatus, TaskEvent, TriggerKind
from apps.autonomy.jobs import Job, build_job
from apps.autonomy.locks import lock_session
from apps.autonomy.models import AutonomousSession, Checkpoint
from apps.autonomy.schemas import TaskLimits
from apps.autonomy.services.bus_messages import enqueue_admission
from apps.autonomy.services.session_control import schedule_watch
from apps.autonomy.services.session_end import LATE, LOST, Ending, end
from apps.bus.deliveries import Delivery
from apps.guard import services as guard
from apps.guard.enums import Origin, Phase, TerminalReason
from apps.guard.queries import current_pauses
from apps.skills import queries as skills
from kernel import fault_points
from kernel.clock import now
from kernel.errors import SilasError

# Tool names of the built-in steps. A task's tool list restricts the tools of its skills, never these.
INTERNAL_TOOLS = frozenset(
    {
        *("open_questions", "new_documents", "goal_state"),
        *("emit_finding", "emit_artifact", "propose_memory", "propose_precedent"),
        *(
            "company_memories",
            "conversations",
            "waiting",
            "promises",
            "refunds",
            "document_ages",
            "new_articles",
            "memories",
            "figures",
        ),
        *("notice", "deliver_silent", "deliver_notify", "deliver_memory_update", "deliver_chain_next", "escalate"),
    }
)


def begin_session(delivery: Delivery) -> Job | None:
    """Start the delivered session and return its job.

    None when there is nothing to run: it is over, its worker was lost, it may no longer start, or it was paused since
    its admission and goes back into the queue.
    """
    assert delivery.message.payload is not None
    session = lock_session(UUID(delivery.message.payload["session"]))
    if session.is_over or session.status == SessionStatus.AWAITING_APPROVAL:
        delivery.finish()
        return None
    if session.status == SessionStatus.RUNNING:
        # Redelivered: its first worker died. A run is never resumed in the middle, it is tried again.
        end(session, LATE if _is_late(session) else LOST)
        delivery.finish()
        return None
    refusal = queries.spawn_refusal(session.task)
    if refusal is not None:
        end(session, Ending(SessionStatus.CANCELLED, TerminalReason.CANCELLED, refusal.value))
        delivery.finish()
        return None
    if current_pauses().stops(session.task.deployment_id, critical=session.task.critical):
        AutonomousSession.objects.filter(pk=session.pk).update(admitted_at=None, message_id=None)
        enqueue_admission()
        delivery.finish()
        return None
    return _start(delivery, session)


def _is_late(session: AutonomousSession) -> bool:
    """Whether it is beyond its time, which is why its worker was ended."""
    if session.run is None or session.run.frozen_limits.wall_seconds is None:
        return False
    return (now() - session.run.started_at).total_seconds() > session.run.frozen_limits.wall_seconds


def _start(delivery: Delivery, session: AutonomousSession) -> Job | None:
    _open_run(session)
    session.status, session.phase = SessionStatus.RUNNING, Phase.INTAKE
    session.egress = queries.autonomy_settings().egress
    session.save(update_fields=["run", "status", "phase", "egress"])
    # The database's clock, by which the session check measures.
    AutonomousSession.objects.filter(pk=session.pk).update(started_at=Now(), heartbeat_at=Now())
    schedule_watch(session.pk)
    Checkpoint.objects.create(session=session, phase=Phase.INTAKE)
    record(AuditEvent.AUTONOMOUS_STARTED, subject=f"autonomous:{session.pk}", data={"run": str(session.run_id)})
    signals.task_event(session, TaskEvent.STARTED, {})
    try:
        return build_job(session, delivery.lease)
    except SilasError as missing:
        end(session, Ending(SessionStatus.FAILED, TerminalReason.FAILED, missing.code))
        delivery.finish()
        return None


def _open_run(session: AutonomousSession) -> None:
    task = session.task
    allow: set[str] | None = None if task.tool_allow is None else {*task.tool_allow, *INTERNAL_TOOLS}
    deny, limits = set(task.tool_deny), session.frozen_limits
    if session.trigger_kind == TriggerKind.DELEGATED and session.parent is not None:
        reachable, denied = _reachable_tools(session.parent)
        allow, deny = reachable if allow is None else allow & reachable, deny | denied
        # The parent session would have to stop by then.
        deadline = session.params.get("deadline")
        left = None if deadline is None else max(int((datetime.fromisoformat(deadline) - now()).total_seconds()), 0)
        limits = rules.smallest_limits(limits, TaskLimits(wall_seconds=left))
    session.run = guard.open_run(
        Origin.BACKGROUND,
        session.pk,
        deployment_id=task.deployment_id,
        phase=Phase.INTAKE,
        task_ref=task.pk,
        critical=task.critical,
        allow=allow,
        deny=deny,
        limits=limits.guards,
        marked=session.marked,
    )


def _reachable_tools(parent: AutonomousSession) -> tuple[set[str], set[str]]:
    """The tools that the parent session could use itself, and those that it was denied."""
    try:
        tools = {tool.name for tool in skills.tools_for(parent.task.skills)}
    except SilasError:
        tools = set()
    reachable = {*tools, *INTERNAL_TOOLS, rules.KNOWLEDGE, rules.WEB}
    run = parent.run
    allowed = reachable if run is None or run.allow is None else reachable & set(run.allow)
    return allowed, set(run.deny if run else ())


def enter_phase(session_id: UUID, phase: Phase, *, outcome: str, state: Mapping[str, object] | None) -> bool:
    """Leave the current phase with its result and enter this one; False for a session that is over."""
    session = lock_session(session_id)
    if session.is_over or session.run_id is None or not guard.enter_phase(session.run_id, phase):
        return False
    current = Checkpoint.objects.filter(session=session, left_at=None)
    left_at = Greatest(Now(), F("entered_at"))
    current.update(left_at=left_at, outcome=outcome[:60], state=None if state is None else dict(state))
    Checkpoint.objects.create(session=session, phase=phase)
    AutonomousSession.objects.filter(pk=session.pk).update(phase=phase, heartbeat_at=Now())
    return True


def conclude_session(delivery: Delivery, session_id: UUID, ending: Ending) -> None:
    """The terminal handler: end the session together with its delivery, for every result."""
    session = lock_session(session_id)
    end(session, _with_halt_reason(session, ending))
    delivery.finish()
    fault_points.reach("autonomy.before_end")


def _with_halt_reason(session: AutonomousSession, ending: Ending) -> Ending:
    """Use the reason given with the halt; the guard reports only that the session was stopped."""
    if not session.halt_reason or ending.reason != TerminalReason.EXTERNAL_HALT:
        return ending
    return replace(ending, reason=TerminalReason(session.halt_reason))
