"""Delegate questions to other tasks, within what a session has left, at its delivery (its last call); one level deep.

What is left is divided into equal shares, one for each delegated session and one for the session that collects. No
session waits: the parent ends, and when all its children are over, another session of its task starts with their
results and with what they did not use. Everything is counted from rows, so that a crash gives no share twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from django.db.models import Exists, OuterRef

from apps.autonomy import queries, rules
from apps.autonomy.enums import TriggerKind
from apps.autonomy.locks import lock_session
from apps.autonomy.models import AutonomousSession, Task
from apps.autonomy.schemas import DelegatedQuestion, Occasion, Spawned, TaskLimits, storable_text
from apps.autonomy.services import session_start
from kernel.clock import now
from kernel.tenancy import for_each_row

_RECENT = timedelta(days=2)


def delegate(session_id: UUID, questions: Sequence[DelegatedQuestion]) -> bool:
    """Queue sessions for the allowed questions; return whether any were, now or by an earlier attempt.

    Runs in the settlement of the session's last call.
    """
    # Under the session's lock, so that rival attempts do not divide the same rest twice.
    halted = lock_session(session_id).halt_reason
    session = queries.session(session_id)
    if queries.has_delegated(session.origin):
        return True
    allowed = [question for question in questions if _may_delegate(session, question.task)][: rules.MAX_CHILDREN]
    if not allowed or halted:
        return False
    left = rules.subtract_limits(
        queries.budget_left(session), TaskLimits(memory_writes=queries.usage_of(session).memory_writes)
    )
    # One share more than questions: the collecting session needs its own.
    share, pool = rules.divide_limits(left, len(allowed) + 1)
    params = {"pool": pool.model_dump(mode="json", exclude_none=True), "deadline": _deadline(session)}
    # A list, because `any` of a generator would stop at the first success.
    spawned = [
        _spawn_child(session, question, share, {**params, "number": number}) for number, question in enumerate(allowed)
    ]
    return any(spawned)


def _spawn_child(
    session: AutonomousSession, question: DelegatedQuestion, share: TaskLimits, params: dict[str, object]
) -> bool:
    spawned = session_start.spawn(
        queries.task(question.task),
        kind=TriggerKind.DELEGATED,
        occasion=Occasion(f"delegated:{session.origin}:{params['number']}", params=params),
        requested_by=f"session:{session.pk}",
        parent=session,
        limits=share,
        context=question.question,
    )
    return isinstance(spawned, Spawned)


def _may_delegate(session: AutonomousSession, task_id: UUID) -> bool:
    """Whether the task's list allows it, and the delegate still meets the rules under which it was listed."""
    if session.trigger_kind == TriggerKind.DELEGATED or str(task_id) not in session.task.delegates_to:
        return False
    task = Task.objects.filter(pk=task_id, deleted_at=None).first()
    return task is not None and rules.may_delegate_to(session.task, task)


def _deadline(session: AutonomousSession) -> str | None:
    seconds = session.frozen_limits.wall_seconds
    if session.run is None or seconds is None:
        return None
    return (session.run.started_at + timedelta(seconds=seconds)).isoformat()


def start_collecting_sessions() -> int:
    """Start the collecting session of each parent whose children are all over; return how many.

    Runs after every end of a session. Of rivals, one starts it.
    """
    children = AutonomousSession.objects.filter(trigger_kind=TriggerKind.DELEGATED, parent=OuterRef("pk"))
    recent = AutonomousSession.objects.filter(trigger_kind=TriggerKind.DELEGATED, queued_at__gte=now() - _RECENT)
    over = AutonomousSession.objects.filter(pk__in=recent.values("parent"), ended_at__isnull=False, halt_reason="")
    # Only recent ones: what was not collected within two days is not collected any more.
    ready = over.exclude(Exists(children.filter(ended_at=None)))
    ready = ready.exclude(Exists(children.filter(params__has_key="collects"))).select_related("task__deployment", "run")
    return for_each_row(ready, _start_collecting)


def _start_collecting(parent: AutonomousSession) -> bool:
    if queries.spawn_refusal(parent.task) is not None:
        return False
    children = queries.delegated_sessions(parent)
    pool = TaskLimits.model_validate(children[0].params["pool"])
    session = session_start.new_session(
        parent.task,
        kind=TriggerKind.DELEGATED,
        occasion=Occasion(f"collects:{parent.pk}", {"collects": True, "deadline": children[0].params["deadline"]}),
        limits=rules.subtract_limits(pool, *(queries.usage_of(child) for child in children)),
        trigger=None,
        requested_by=f"session:{parent.pk}",
    )
    results = [f"{child.task.name}: {child.output or child.terminal_reason}" for child in children]
    session.context = storable_text("\n\n".join([parent.output, *results]), session_start.LONGEST_CONTEXT)
    session.parent, session.depth = parent, parent.depth + 1
    session.marked = any(map(session_start.is_marked, (parent, *children)))
    return bool(session_start.insert_sessions([session]))
