"""Queue items for the executors: one message for each delivery, with its place in the pool's queue."""

from __future__ import annotations

from apps.bus import services as bus
from apps.bus.enums import Kind, Queue, Sender
from apps.bus.schemas import ExecutionRequest
from apps.skills import queries as skills
from apps.work import pool
from apps.work.conflicts import Claims, claims_of
from apps.work.enums import SlotKind, WorkItemType
from apps.work.locks import lock_course
from apps.work.models import WorkItem
from kernel.errors import SilasError
from kernel.taint import Taint


def enqueue(item: WorkItem, *, resumes: str | None = None) -> None:
    """Queue the locked item once more; `resumes` names the message that advised it. The wake-up of a worker waits for
    the commit and may be lost without harm."""
    course = lock_course(item)
    course.deliveries += 1
    course.save(update_fields=["deliveries"])
    message = bus.send_message(
        Queue.EXECUTOR,
        kind=Kind.EXECUTION_REQUEST,
        scope_id=item.pk,
        sender=Sender.RUNTIME,
        task_id=item.pk,
        parent_task_id=item.parent_id,
        trace_id=item.trace_id,
        # Counted on the locked row, so that the same delivery enqueued twice is one message.
        message_id=f"execute:{item.pk}:{course.deliveries}",
        taint=Taint.AUTH,
        payload=ExecutionRequest(resumes=resumes),
    )
    pool.join_queue(message, scope_id=pool_scope(item), kind=SlotKind.EXECUTION, claims=_claims(item))


def pool_scope(item: WorkItem) -> str:
    """Return whose work is counted together: a conversation's, a project's, else the item's own."""
    project = item.parent if item.parent and item.parent.type == WorkItemType.PROJECT else None
    return str(item.session_id or (project or item).pk)


def _claims(item: WorkItem) -> Claims:
    """Return what the item may write. A missing skill claims nothing: the attempt will fail with that reason."""
    try:
        return claims_of(item.spec.calls, skills.tools_for(item.spec.skills), item.subject)
    except SilasError:
        return Claims()
