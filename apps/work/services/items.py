"""Create and move work items. Every change of status is audited and announced here only."""

from __future__ import annotations

from uuid import UUID

from django.utils.functional import Promise

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.work import rules, signals, visitor_messages
from apps.work.enums import WorkItemStatus, WorkItemType, WorkReason
from apps.work.models import VISITOR, WorkItem
from apps.work.schemas import WorkItemSpec
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext


def create_item(
    spec: WorkItemSpec,
    *,
    deployment_id: UUID | None,
    session_id: UUID | None,
    trace_id: str,
    subject: str = "",
    requested_by: str = VISITOR,
) -> WorkItem:
    """Store a proposed item. The plan's own id is the row's; `spec.parent` is a work item of the same tenant."""
    moment = now()
    item: WorkItem = WorkItem.objects.create(
        id=UUID(spec.id),
        deployment_id=deployment_id,
        session_id=session_id,
        parent_id=UUID(spec.parent) if spec.parent else None,
        follow_up_of_id=UUID(spec.follow_up_of) if spec.follow_up_of else None,
        type=spec.type,
        title=spec.title,
        plan=spec.as_text(),
        plan_hash=spec.plan_hash,
        subject=subject,
        requested_by=requested_by,
        trace_id=trace_id,
        created_at=moment,
        updated_at=moment,
    )
    data = {"type": item.type, "plan_hash": item.plan_hash, "requested_by": requested_by}
    record(AuditEvent.WORK_PROPOSED, subject=f"work:{item.pk}", data=data)
    return item


def move(
    item: WorkItem,
    status: WorkItemStatus,
    *,
    reason: WorkReason = WorkReason.NONE,
    next_steps: list[str] | None = None,
    result: str | Promise = "",
    **changes: object,
) -> None:
    """Move the item to `status`, with `changes` of its other fields, and notify the rooms above. `result`: what the
    tools said, for the visitor.

    Raises `SilasError("work_settled")` when the transition is not allowed, or the item has been moved meanwhile.
    """
    old, kind = WorkItemStatus(item.status), WorkItemType(item.type)
    values = {"status": status, "reason": reason, "next_steps": next_steps or [], "updated_at": now(), **changes}
    # The update is conditional on the old status: of two concurrent moves only one succeeds.
    if not rules.may_move(kind, old, status) or not WorkItem.objects.filter(pk=item.pk, status=old).update(**values):
        raise SilasError(ErrorCode.WORK_SETTLED, gettext("This work has already ended or changed."))
    for name, value in values.items():
        setattr(item, name, value)
    record(AuditEvent.WORK_MOVED, subject=f"work:{item.pk}", data={"status": status.value, "reason": reason.value})
    announce(item, visitor_messages.join(" ", visitor_messages.status_message(status, reason, item.title), result))


def announce(
    item: WorkItem, text: str | Promise, *, changes: tuple[visitor_messages.Change, ...] | None = None
) -> None:
    """`changes`: as `signals.Progress` has them."""
    signals.work_changed(item, item.status, signals.Progress(text, list(item.next_steps), changes))


def announce_waiting(item: WorkItem, changes: tuple[visitor_messages.Change, ...]) -> None:
    """Tell the conversation that the item waits for approval, and which values it asks for."""
    waiting = visitor_messages.about(visitor_messages.WAITING, item.title)
    announce(item, visitor_messages.join("\n", waiting, visitor_messages.lines_of(changes)), changes=changes)
