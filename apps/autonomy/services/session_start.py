"""Create sessions: the only way for triggers, people, and sessions that start another.

Consent is checked at every spawn. `occasion` is unique: of rivals that would start the same, one does. Limits are
frozen here: the smallest of all that are set, and for a child never more than its parent has left.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from uuid import UUID, uuid4

from django.db.models.functions import Now

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.autonomy import queries, rules, signals
from apps.autonomy.enums import SpawnRefusal, TaskEvent, TriggerKind
from apps.autonomy.models import AutonomousSession, AutonomySettings, Task, Trigger
from apps.autonomy.schemas import (
    DEFAULT_LIMITS,
    MOST_USD,
    NotSpawned,
    Occasion,
    Spawn,
    Spawned,
    TaskLimits,
    storable_text,
)
from apps.autonomy.services import bus_messages, notices
from apps.autonomy.services.consent import MAY_SET_UP, require_opt_in
from apps.guard.queries import current_pauses, has_content_marks
from apps.tenants.models import User
from apps.tenants.queries import require_role
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext

LONGEST_CONTEXT = 8000


def spawn(
    task: Task,
    *,
    kind: TriggerKind,
    occasion: Occasion,
    requested_by: str,
    trigger: Trigger | None = None,
    parent: AutonomousSession | None = None,
    limits: TaskLimits | None = None,
    context: str = "",
    marked: bool = False,
) -> Spawn:
    """Queue a session of the task, or say why not.

    `limits` restrict it further, for example by a manual cap; for a delegated session they are its share. With a
    `parent` it is part of that chain, whose length is limited, and runs within what the parent has left, unless it was
    escalated. `marked`: `context` is the text of a marked session; a parent's mark is passed on in any case.
    """
    refusal = queries.spawn_refusal(task) or (_chain_refusal(task, parent) if parent else None)
    if refusal is not None:
        return record_refusal(task, kind, refusal)
    caps = [limits or TaskLimits(), TaskLimits(cost_usd=trigger.cap_usd if trigger else None)]
    # An escalated session has limits of its own; every other child is paid from its parent's.
    payer = parent if kind is not TriggerKind.ESCALATED else None
    if payer is not None and kind is not TriggerKind.DELEGATED:
        caps.append(queries.budget_left(payer))
    frozen = frozen_limits(task, queries.autonomy_settings(), *caps)
    if payer is not None and rules.is_spent(frozen):
        return record_refusal(task, kind, SpawnRefusal.NOTHING_LEFT)
    session = new_session(task, kind=kind, occasion=occasion, limits=frozen, trigger=trigger, requested_by=requested_by)
    session.context = storable_text(context, LONGEST_CONTEXT)
    session.marked = marked or (parent is not None and is_marked(parent))
    if parent is not None:
        session.parent, session.depth = parent, parent.depth + 1
    return NotSpawned(SpawnRefusal.TWICE) if not insert_sessions([session]) else Spawned(session.pk)


def run_now(
    task_id: UUID,
    *,
    user: User,
    params: Mapping[str, object] | None = None,
    cap_usd: Decimal | None = None,
    once: UUID | None = None,
) -> Spawn:
    """Start a session manually. Idempotent by `once`: repeated, it returns the session that was started first.

    Raises 403 for a member who may not or has not opted in, 422 task_limits for a cap out of bounds.
    """
    require_role(user, MAY_SET_UP)
    require_opt_in(user)
    if cap_usd is not None and not 0 <= cap_usd <= MOST_USD:
        raise SilasError(
            ErrorCode.TASK_LIMITS,
            gettext("Enter a cap between 0 and {most_usd} dollars.").format(most_usd=MOST_USD),
        )
    occasion = _manual_occasion(task_id, once, params or {})
    caps = TaskLimits(cost_usd=cap_usd)
    task = queries.task(task_id)
    spawned = spawn(task, kind=TriggerKind.MANUAL, occasion=occasion, requested_by=user.actor, limits=caps)
    if isinstance(spawned, Spawned) and current_pauses().stops(task.deployment_id, critical=task.critical):
        notices.notify_of_session(queries.session(spawned.session_id), reason=notices.WAITS_FOR_LIMIT, counts={})
    return _or_earlier(spawned, occasion)


def retry_session(session_id: UUID, *, user: User, once: UUID | None = None) -> Spawn:
    """Repeat a finished session from the beginning, as a new one. `once` as of `run_now`."""
    require_role(user, MAY_SET_UP)
    require_opt_in(user)
    former = queries.session(session_id)
    if not former.is_over:
        raise SilasError(ErrorCode.NOT_OVER)
    occasion = _manual_occasion(session_id, once, former.params)
    spawned = spawn(
        queries.task(former.task_id),
        kind=TriggerKind.MANUAL,
        occasion=occasion,
        requested_by=user.actor,
        context=former.context,
        marked=is_marked(former),
        limits=TaskLimits(cost_usd=former.frozen_limits.cost_usd),
    )
    return _or_earlier(spawned, occasion)


def _manual_occasion(subject: UUID, once: UUID | None, params: Mapping[str, object]) -> Occasion:
    return Occasion(f"manual:{subject}:{once or uuid4()}", params=dict(params))


def _or_earlier(spawned: Spawn, occasion: Occasion) -> Spawn:
    """The earlier session where this occasion has started one: a button pressed twice counts once."""
    if spawned != NotSpawned(SpawnRefusal.TWICE):
        return spawned
    return Spawned(AutonomousSession.objects.values_list("pk", flat=True).get(occasion=occasion.key))


def queue_next_attempt(lost: AutonomousSession, *, left: TaskLimits, seconds: float) -> AutonomousSession:
    """Queue the same occasion again after a fault of the machine, within what its attempts have left."""
    attempt = _next_session(lost, key=f"again:{lost.pk}", limits=left)
    attempt.attempt, attempt.not_before = lost.attempt + 1, Now() + timedelta(seconds=seconds)
    if insert_sessions([attempt]):
        attempt.refresh_from_db(fields=["not_before"])
        bus_messages.schedule_admission(f"again:{attempt.pk}", attempt.not_before)
    return attempt


def continue_session(stopped: AutonomousSession, *, key: str, limits: TaskLimits) -> AutonomousSession | None:
    """Continue the same occasion where it was stopped; None if `key` has continued it already."""
    return next(iter(insert_sessions([_next_session(stopped, key=key, limits=limits)])), None)


def _next_session(former: AutonomousSession, *, key: str, limits: TaskLimits) -> AutonomousSession:
    occasion = Occasion(key, params={**former.params, "resumes": str(former.pk)})
    session = new_session(
        former.task,
        kind=TriggerKind(former.trigger_kind),
        occasion=occasion,
        limits=limits,
        trigger=former.trigger,
        requested_by=former.requested_by,
    )
    session.attempt, session.root_id, session.context = former.attempt, former.origin, former.context
    session.parent_id, session.depth, session.lane = former.parent_id, former.depth, former.lane
    session.marked = is_marked(former)
    return session


def is_marked(session: AutonomousSession) -> bool:
    """Whether its text may come from instructions to the assistant that it read."""
    return session.marked or has_content_marks(session.pk)


def frozen_limits(task: Task, settings: AutonomySettings, *caps: TaskLimits) -> TaskLimits:
    """Field by field the smallest limit of task, company, trigger, request and parent; 0 counts."""
    own = TaskLimits.model_validate({**DEFAULT_LIMITS.model_dump(), **task.limits})
    return rules.smallest_limits(own, queries.company_limits(settings), *caps)


def new_session(
    task: Task, *, kind: TriggerKind, occasion: Occasion, limits: TaskLimits, trigger: Trigger | None, requested_by: str
) -> AutonomousSession:
    """An unsaved session."""
    return AutonomousSession(
        task=task,
        trigger=trigger,
        trigger_kind=kind,
        occasion=occasion.key[:200],
        priority=task.priority,
        lane=task.session_lane,
        requested_by=requested_by,
        params=dict(occasion.params),
        limits=limits.model_dump(mode="json", exclude_none=True),
        queued_at=Now(),
        not_before=Now(),
    )


def insert_sessions(sessions: list[AutonomousSession]) -> list[AutonomousSession]:
    """Queue them and announce it; return those that are new. An occasion that has started already is left out."""
    # The unique occasion decides between rivals; which rows were inserted is read back.
    AutonomousSession.objects.bulk_create(sessions, ignore_conflicts=True)
    ids = [session.pk for session in sessions]
    stored = set(AutonomousSession.objects.filter(pk__in=ids).values_list("pk", flat=True))
    queued = [session for session in sessions if session.pk in stored]
    for session in queued:
        data = {"task": str(session.task_id), "kind": session.trigger_kind, "attempt": session.attempt}
        record(
            AuditEvent.AUTONOMOUS_QUEUED,
            actor=session.requested_by if session.requested_by and session.attempt == 1 else "system",
            subject=f"autonomous:{session.pk}",
            data=data,
        )
        signals.task_event(session, TaskEvent.SCHEDULED, {})
    if queued:
        bus_messages.enqueue_admission()
    return queued


def record_refusal(task: Task, kind: TriggerKind, code: SpawnRefusal, *, times: int = 1) -> NotSpawned:
    data = {"reason": code.value, "kind": TriggerKind(kind).value, "times": times}
    record(AuditEvent.SPAWN_REFUSED, subject=f"task:{task.pk}", data=data)
    return NotSpawned(code)


def _chain_refusal(task: Task, parent: AutonomousSession) -> SpawnRefusal | None:
    """Why the task may not join the parent's chain: no task twice, and a limited depth."""
    if any(session.task_id == task.pk for session in queries.ancestors_of(parent)):
        return SpawnRefusal.CHAIN_LOOP
    return SpawnRefusal.TOO_DEEP if parent.depth + 1 > rules.MAX_DEPTH else None
