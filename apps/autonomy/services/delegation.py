"""Divide what a session has left among others: at its delivery, which is its last call; one level deep.

What is left is cut into equal parts, one for each task that was asked and one for the session that collects. Nobody
waits: the asking session ends, and when no asked one is under way any more, another of its own task begins with their
results and with what they did not use. All is counted from rows, so that a crash at any point gives nothing twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
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


def delegate(session_id: UUID, asked: Sequence[DelegatedQuestion]) -> bool:
    """Queue those that may be asked; whether any were, now or by an attempt before. In the settlement of the session's
    last call."""
    halted = lock_session(session_id).halt_reason
    session = queries.session(session_id)
    if queries.has_delegated(session.origin):
        return True
    asked = [each for each in asked if _may_ask(session, each.task)][: rules.MAX_CHILDREN]
    if not asked or halted:
        return False
    left = rules.subtract_limits(
        queries.budget_left(session), TaskLimits(memory_writes=queries.usage_of(session).memory_writes)
    )
    share, pool = rules.divide_limits(left, len(asked) + 1)
    params = {"pool": pool.model_dump(mode="json", exclude_none=True), "deadline": _deadline(session)}
    begun = [_asked(session, each, share, {**params, "number": place}) for place, each in enumerate(asked)]
    return any(begun)


def _asked(session: AutonomousSession, asked: DelegatedQuestion, share: TaskLimits, params: dict[str, Any]) -> bool:
    spawned = session_start.spawn(
        queries.task(asked.task),
        kind=TriggerKind.DELEGATED,
        owed=Occasion(f"delegated:{session.origin}:{params['number']}", params=params),
        requested_by=f"session:{session.pk}",
        parent=session,
        limits=share,
        context=asked.question,
    )
    return isinstance(spawned, Spawned)


def _may_ask(session: AutonomousSession, task_id: UUID) -> bool:
    """As the task's list says, and as it was when somebody wrote the list."""
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
    """Begin the session that goes on with what others found, for each that has all of it; returns how many. After every
    end of a session; rivals begin it once."""
    asked = AutonomousSession.objects.filter(trigger_kind=TriggerKind.DELEGATED, parent=OuterRef("pk"))
    recent = AutonomousSession.objects.filter(trigger_kind=TriggerKind.DELEGATED, queued_at__gte=now() - _RECENT)
    over = AutonomousSession.objects.filter(pk__in=recent.values("parent"), ended_at__isnull=False, halt_reason="")
    ready = over.exclude(Exists(asked.filter(ended_at=None)))
    ready = ready.exclude(Exists(asked.filter(params__has_key="collects"))).select_related("task__deployment", "run")
    return for_each_row(ready, _collected)


def _collected(parent: AutonomousSession) -> bool:
    if queries.spawn_refusal(parent.task) is not None:
        return False
    children = queries.delegated_sessions(parent)
    pool = TaskLimits.model_validate(children[0].params["pool"])
    session = session_start.new_session(
        parent.task,
        kind=TriggerKind.DELEGATED,
        owed=Occasion(f"collects:{parent.pk}", {"collects": True, "deadline": children[0].params["deadline"]}),
        limits=rules.subtract_limits(pool, *(queries.usage_of(each) for each in children)),
        trigger=None,
        requested_by=f"session:{parent.pk}",
    )
    said = [f"{each.task.name}: {each.output or each.terminal_reason}" for each in children]
    session.context = storable_text("\n\n".join([parent.output, *said]), session_start.LONGEST_CONTEXT)
    session.parent, session.depth = parent, parent.depth + 1
    session.marked = any(map(session_start.is_marked, (parent, *children)))
    return bool(session_start.insert_sessions([session]))
