"""How is work called off? By whoever asked for it or by staff: at once where nothing runs, else at its next tool call.

What had taken effect by then stays, and the visitor is told so. Work whose checks pass all the same is done: the truth
goes before the wish (contract silas 15, pool).
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from apps.approvals.enums import Withdrawal
from apps.approvals.locks import lock_waiting
from apps.approvals.services import pauses, withdraw_about
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus.deliveries import Delivery
from apps.guard import services as guard
from apps.guard.enums import TerminalReason
from apps.tenants.enums import Capability
from apps.tenants.queries import require_role
from apps.tenants.rules import roles_with
from apps.work import rules, visitor_messages
from apps.work.enums import WorkItemStatus, WorkItemType, WorkReason
from apps.work.locks import lock_course, lock_item
from apps.work.models import VISITOR, LedgerEntry, WorkItem
from apps.work.queries import children_of, open_requests_of, work_item
from apps.work.services import completion
from apps.work.services.approval_requests import WORK_ITEM
from kernel.errors import NotFound, SilasError

OPERATORS = roles_with(Capability.ANSWER)


def cancel_for_staff(item_id: UUID, *, user: Any) -> WorkItem:
    """Raises `SilasError` for a member without the right, `NotFound` for what is not theirs, 409 for what is over."""
    require_role(user, OPERATORS)
    return _cancel(work_item(item_id), by=f"user:{user.pk}")


def cancel_for_visitor(item_id: UUID, *, session_id: UUID, subject: str) -> WorkItem:
    """The visitor takes back what they asked for in this conversation, or as the customer they have proved to be. What
    is anybody else's, or the house's, does not exist for them."""
    item = work_item(item_id)
    theirs = item.subject == subject if item.subject else item.session_id == session_id
    if not theirs or item.requested_by != VISITOR or item.is_part:
        raise NotFound("work item")
    return _cancel(item, by=f"session:{session_id}")


def lock_cancellable(*, session_id: UUID, subject: str) -> UUID | None:
    """The one thing that the visitor waits for, locked as calling it off locks it, by whoever locks the conversation
    next; None where it is not clear what is meant."""
    waiting = open_requests_of(subject=subject, session_id=session_id)
    if len(waiting) != 1:
        return None
    lock_waiting(subject_kind=WORK_ITEM, subject_id=waiting[0].pk)
    pauses.lock_unfinished(WORK_ITEM, waiting[0].pk)
    item = lock_item(waiting[0].pk)
    return None if WorkItemStatus(item.status) in rules.FINAL else item.pk


def _cancel(item: WorkItem, *, by: str) -> WorkItem:
    """Take back whatever still asks about it, which ends what only waits, then stop the rest."""
    if item.type == WorkItemType.GOAL:
        raise SilasError("not_cancellable", "A goal is changed, not called off.", status=409)
    record(AuditEvent.WORK_CANCELLED, actor=by, subject=f"work:{item.pk}", data={"status": item.status})
    asked = withdraw_about(WORK_ITEM, item.pk, reason=Withdrawal.CANCELLED, actor=by)
    asked += pauses.withdraw_pauses(WORK_ITEM, item.pk, reason=Withdrawal.CANCELLED, actor=by)
    item = lock_item(item.pk)
    if WorkItemStatus(item.status) in rules.FINAL and not asked:
        raise SilasError("work_settled", "This work has ended already.", status=409)
    if item.type != WorkItemType.PROJECT:
        _stop(item, by)
    else:
        _stop_project(item, by)
    return item


def _stop(item: WorkItem, by: str) -> None:
    """What runs is asked to stop at its next tool call, and whoever delivers it then ends it; the rest ends now."""
    if item.status != WorkItemStatus.RUNNING:
        end_if_open(item)
        return
    course = lock_course(item)
    course.cancelled_by = by
    course.save(update_fields=["cancelled_by"])
    if item.run_id is not None:
        guard.halt(item.run_id, reason=TerminalReason.CANCELLED, actor=by)


def _stop_project(project: WorkItem, by: str) -> None:
    """The project ends now, and with it what has not begun."""
    for task in children_of(project):
        if task.status == WorkItemStatus.RUNNING:
            _stop(task, by)
    end_if_open(project)


def end_if_open(item: WorkItem) -> None:
    """Nothing of the locked item runs, and nothing will."""
    if WorkItemStatus(item.status) not in rules.FINAL:
        _end_as_cancelled(item)


def end_cancelled(delivery: Delivery, item: WorkItem) -> None:
    """The worker has come to the boundary at which work that was called off stops."""
    _end_as_cancelled(item)
    completion.finish_delivery(delivery)


def _end_as_cancelled(item: WorkItem) -> None:
    acted = LedgerEntry.objects.filter(attempt__work_item=item, success=True).exists()
    said = visitor_messages.PARTS_STAY if acted else visitor_messages.NOTHING_CHANGED
    completion.end_item(item, WorkItemStatus.FAILED, WorkReason.CANCELLED, error=item.last_error, result=said)
