"""Cancel work, by its requester or by staff: at once if nothing runs, else at its next tool call.

What had taken effect stays, and the visitor is told so. Work whose checks pass anyway is done (contract silas 15,
pool).
"""

from __future__ import annotations

from uuid import UUID

from apps.approvals.cards import pauses
from apps.approvals.cards.lifecycle import withdraw_cards_about
from apps.approvals.enums import Withdrawal
from apps.approvals.locks import lock_open_cards
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus.deliveries import Delivery
from apps.guard import services as guard
from apps.guard.enums import TerminalReason
from apps.tenants.enums import Capability
from apps.tenants.models import User
from apps.tenants.queries import require_role
from apps.tenants.rules import forbidden_role, roles_with
from apps.work import rules, visitor_messages
from apps.work.enums import WorkItemStatus, WorkItemType, WorkReason
from apps.work.locks import lock_course, lock_item
from apps.work.models import VISITOR, LedgerEntry, WorkItem
from apps.work.queries import children_of, open_requests_of, work_item
from apps.work.services import completion
from apps.work.services.approval_requests import WORK_ITEM
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext

OPERATORS = roles_with(Capability.ANSWER)


def cancel_for_staff(item_id: UUID, *, user: User | None, actor: str = "") -> WorkItem:
    """Cancel as staff, see `require_operator`. Raises `NotFound` for a foreign id, 409 for finished work."""
    by = require_operator(user, actor)
    return _cancel(work_item(item_id), by=by)


def require_operator(user: User | None, actor: str = "") -> str:
    """The actor of a member who may stop and resume work, or without `user` the API key `actor`, which may do what
    owners may. Raises 403 `forbidden_role` for other members."""
    if user is None:
        if not actor:
            raise forbidden_role(OPERATORS)
        return actor
    require_role(user, OPERATORS)
    return user.actor


def cancel_for_visitor(item_id: UUID, *, session_id: UUID, subject: str) -> WorkItem:
    """Cancel what the visitor requested in this conversation, or as a verified customer. Raises `NotFound` for anything
    else."""
    item = work_item(item_id)
    # What was asked for as a verified customer is cancelled by that customer only, also in the same conversation.
    theirs = item.subject == subject if item.subject else item.session_id == session_id
    if not theirs or item.requested_by != VISITOR or item.is_part:
        raise NotFound()
    return _cancel(item, by=f"session:{session_id}")


def lock_cancellable(*, session_id: UUID, subject: str) -> UUID | None:
    """Lock the one open request of the visitor in the order in which cancelling locks it; None if it is ambiguous.
    Called before the conversation is locked."""
    waiting = open_requests_of(subject=subject, session_id=session_id)
    # With several open requests it is unclear which one the visitor means.
    if len(waiting) != 1:
        return None
    lock_open_cards(subject_kind=WORK_ITEM, subject_id=waiting[0].pk)
    pauses.lock_unfinished_pauses(WORK_ITEM, waiting[0].pk)
    item = lock_item(waiting[0].pk)
    return None if WorkItemStatus(item.status) in rules.FINAL else item.pk


def _cancel(item: WorkItem, *, by: str) -> WorkItem:
    """Withdraw the cards about it, which ends what only waits, then stop the rest."""
    if item.type == WorkItemType.GOAL:
        raise SilasError(ErrorCode.NOT_CANCELLABLE)
    record(AuditEvent.WORK_CANCELLED, actor=by, subject=f"work:{item.pk}", data={"status": item.status})
    # Cards before items: the order of locks.
    withdrawn = withdraw_cards_about(WORK_ITEM, item.pk, reason=Withdrawal.CANCELLED, actor=by)
    withdrawn += pauses.withdraw_pauses(WORK_ITEM, item.pk, reason=Withdrawal.CANCELLED, actor=by)
    item = lock_item(item.pk)
    if WorkItemStatus(item.status) in rules.FINAL and not withdrawn:
        raise SilasError(ErrorCode.WORK_SETTLED, gettext("This work has already ended."))
    if item.type != WorkItemType.PROJECT:
        _stop(item, by)
    else:
        _stop_project(item, by)
    return item


def _stop(item: WorkItem, by: str) -> None:
    """Ask running work to stop at its next tool call, where its worker ends it; end the rest now."""
    if item.status != WorkItemStatus.RUNNING:
        end_if_open(item)
        return
    course = lock_course(item)
    course.cancelled_by = by
    course.save(update_fields=["cancelled_by"])
    if item.run_id is not None:
        guard.halt(item.run_id, reason=TerminalReason.CANCELLED, actor=by)


def _stop_project(project: WorkItem, by: str) -> None:
    """End the project now, and with it the tasks that have not begun."""
    for task in children_of(project):
        if task.status == WorkItemStatus.RUNNING:
            _stop(task, by)
    end_if_open(project)


def end_if_open(item: WorkItem) -> None:
    """End the locked item, of which nothing runs, as cancelled."""
    if WorkItemStatus(item.status) not in rules.FINAL:
        _end_as_cancelled(item)


def end_cancelled(delivery: Delivery, item: WorkItem) -> None:
    """End cancelled work whose worker has reached the point at which it stops."""
    _end_as_cancelled(item)
    completion.finish_delivery(delivery)


def _end_as_cancelled(item: WorkItem) -> None:
    acted = LedgerEntry.objects.filter(attempt__work_item=item, success=True).exists()
    message = visitor_messages.PARTS_STAY if acted else visitor_messages.NOTHING_CHANGED
    completion.end_item(item, WorkItemStatus.FAILED, WorkReason.CANCELLED, error=item.last_error, result=message)
