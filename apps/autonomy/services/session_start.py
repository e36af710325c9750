"""Make a session: one door, for triggers, people, and sessions that begin another.

Consent is asked at every spawn. `occasion` is unique: of rivals that would begin the same, one does. Limits are frozen
here: the smallest of all that are said, and for a child never more than its parent has left.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any
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
from apps.guard.queries import pauses, read_instructions
from apps.tenants.queries import require_role
from kernel.errors import SilasError

LONGEST_CONTEXT = 8000


def spawn(
    task: Task,
    *,
    kind: TriggerKind,
    owed: Occasion,
    requested_by: str,
    trigger: Trigger | None = None,
    parent: AutonomousSession | None = None,
    limits: TaskLimits | None = None,
    context: str = "",
    marked: bool = False,
) -> Spawn:
    """Queue a session of the task, or say why not. `limits` narrow further, for example a cap given by hand; of one
    that another asks, they are its share of what that one has left. A `parent` makes it a link of that chain, which
    ends; within what the parent has left runs all but who is called for help. `marked`: the words in `context` are a
    marked session's; a parent's mark is passed on without it."""
    refusal = queries.spawn_refusal(task) or (_against_child(task, parent) if parent else None)
    if refusal is not None:
        return record_refusal(task, kind, refusal)
    caps = [limits or TaskLimits(), TaskLimits(cost_usd=trigger.cap_usd if trigger else None)]
    within = parent if kind is not TriggerKind.ESCALATED else None
    if within is not None and kind is not TriggerKind.DELEGATED:
        caps.append(queries.budget_left(within))
    frozen = frozen_limits(task, queries.autonomy_settings(), *caps)
    if within is not None and rules.is_spent(frozen):
        return record_refusal(task, kind, SpawnRefusal.NOTHING_LEFT)
    session = new_session(task, kind=kind, owed=owed, limits=frozen, trigger=trigger, requested_by=requested_by)
    session.context = storable_text(context, LONGEST_CONTEXT)
    session.marked = marked or (parent is not None and is_marked(parent))
    if parent is not None:
        session.parent, session.depth = parent, parent.depth + 1
    return NotSpawned(SpawnRefusal.TWICE) if not insert_sessions([session]) else Spawned(session.pk)


def run_now(
    task_id: UUID,
    *,
    user: Any,
    params: Mapping[str, Any] | None = None,
    cap_usd: Decimal | None = None,
    once: UUID | None = None,
) -> Spawn:
    """By hand, at once; what was asked with the same `once` before is answered with the session that began then.

    Raises 403 for who may not or has not opted in, 422 task_limits for an absurd cap.
    """
    require_role(user, MAY_SET_UP)
    require_opt_in(user)
    if cap_usd is not None and not 0 <= cap_usd <= MOST_USD:
        raise SilasError("task_limits", f"A cap lies between 0 and {MOST_USD} dollars.", status=422)
    owed = _by_hand(task_id, once, params or {})
    caps = TaskLimits(cost_usd=cap_usd)
    task = queries.task(task_id)
    begun = spawn(task, kind=TriggerKind.MANUAL, owed=owed, requested_by=user.actor, limits=caps)
    if isinstance(begun, Spawned) and pauses().stops(task.deployment_id, critical=task.critical):
        notices.notify_of_session(queries.session(begun.session_id), reason=notices.WAITS_FOR_LIMIT, counts={})
    return _or_earlier(begun, owed)


def retry_session(session_id: UUID, *, user: Any, once: UUID | None = None) -> Spawn:
    """A person wants what a session that is over was about once more, from the beginning. `once` as in `run_now`."""
    require_role(user, MAY_SET_UP)
    require_opt_in(user)
    old = queries.session(session_id)
    if not old.is_over:
        raise SilasError("not_over", "This session is not over yet.", status=409)
    owed = _by_hand(session_id, once, old.params)
    begun = spawn(
        queries.task(old.task_id),
        kind=TriggerKind.MANUAL,
        owed=owed,
        requested_by=user.actor,
        context=old.context,
        marked=is_marked(old),
        limits=TaskLimits(cost_usd=old.frozen_limits.cost_usd),
    )
    return _or_earlier(begun, owed)


def _by_hand(subject: UUID, once: UUID | None, params: Mapping[str, Any]) -> Occasion:
    return Occasion(f"manual:{subject}:{once or uuid4()}", params=dict(params))


def _or_earlier(begun: Spawn, owed: Occasion) -> Spawn:
    """What begins nothing because it has begun already is that session: a button pressed twice is pressed once."""
    if begun != NotSpawned(SpawnRefusal.TWICE):
        return begun
    return Spawned(AutonomousSession.objects.values_list("pk", flat=True).get(occasion=owed.key))


def queue_next_attempt(lost: AutonomousSession, *, left: TaskLimits, seconds: float) -> AutonomousSession:
    """The same occasion again, after a fault that was nobody's: a new session inside what its attempts have left."""
    again = _following(lost, key=f"again:{lost.pk}", limits=left)
    again.attempt, again.not_before = lost.attempt + 1, Now() + timedelta(seconds=seconds)
    if insert_sessions([again]):
        again.refresh_from_db(fields=["not_before"])
        bus_messages.schedule_admission(f"again:{again.pk}", again.not_before)
    return again


def continue_session(stopped: AutonomousSession, *, key: str, limits: TaskLimits) -> AutonomousSession | None:
    """The same occasion, where it was stopped; None where `key` has begun it already."""
    return next(iter(insert_sessions([_following(stopped, key=key, limits=limits)])), None)


def _following(former: AutonomousSession, *, key: str, limits: TaskLimits) -> AutonomousSession:
    owed = Occasion(key, params={**former.params, "resumes": str(former.pk)})
    session = new_session(
        former.task,
        kind=TriggerKind(former.trigger_kind),
        owed=owed,
        limits=limits,
        trigger=former.trigger,
        requested_by=former.requested_by,
    )
    session.attempt, session.root_id, session.context = former.attempt, former.origin, former.context
    session.parent_id, session.depth, session.lane = former.parent_id, former.depth, former.lane
    session.marked = is_marked(former)
    return session


def is_marked(session: AutonomousSession) -> bool:
    """Whether what it says may come from instructions to the assistant that it read."""
    return session.marked or read_instructions(session.pk)


def frozen_limits(task: Task, settings: AutonomySettings, *caps: TaskLimits) -> TaskLimits:
    """Of task, company, trigger, whoever asked, and the parent: field by field the smallest; 0 is one."""
    own = TaskLimits.model_validate({**DEFAULT_LIMITS.model_dump(), **task.limits})
    return rules.smallest_limits(own, queries.company_limits(settings), *caps)


def new_session(
    task: Task, *, kind: TriggerKind, owed: Occasion, limits: TaskLimits, trigger: Trigger | None, requested_by: str
) -> AutonomousSession:
    """Not stored yet."""
    return AutonomousSession(
        task=task,
        trigger=trigger,
        trigger_kind=kind,
        occasion=owed.key[:200],
        priority=task.priority,
        lane=task.session_lane,
        requested_by=requested_by,
        params=dict(owed.params),
        limits=limits.model_dump(mode="json", exclude_none=True),
        queued_at=Now(),
        not_before=Now(),
    )


def insert_sessions(sessions: list[AutonomousSession]) -> list[AutonomousSession]:
    """Put them in line; returns those that are new: an occasion that has begun already is left out. Whoever listens is
    told."""
    AutonomousSession.objects.bulk_create(sessions, ignore_conflicts=True)
    wanted = [session.pk for session in sessions]
    stored = set(AutonomousSession.objects.filter(pk__in=wanted).values_list("pk", flat=True))
    fresh = [session for session in sessions if session.pk in stored]
    for session in fresh:
        data = {"task": str(session.task_id), "kind": session.trigger_kind, "attempt": session.attempt}
        record(
            AuditEvent.AUTONOMOUS_QUEUED,
            actor=session.requested_by if session.requested_by and session.attempt == 1 else "system",
            subject=f"autonomous:{session.pk}",
            data=data,
        )
        signals.task_event(session, TaskEvent.SCHEDULED, {})
    if fresh:
        bus_messages.enqueue_admission()
    return fresh


def record_refusal(task: Task, kind: TriggerKind, code: SpawnRefusal, *, times: int = 1) -> NotSpawned:
    data = {"reason": code.value, "kind": TriggerKind(kind).value, "times": times}
    record(AuditEvent.SPAWN_REFUSED, subject=f"task:{task.pk}", data=data)
    return NotSpawned(code)


def _against_child(task: Task, parent: AutonomousSession) -> SpawnRefusal | None:
    """A chain ends: no task twice in it, and not more than so many."""
    line = queries.ancestors_of(parent)
    if any(each.task_id == task.pk for each in line):
        return SpawnRefusal.CHAIN_LOOP
    return SpawnRefusal.TOO_DEEP if parent.depth + 1 > rules.MAX_DEPTH else None
