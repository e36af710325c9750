"""Decide many similar actions at once: open a batch, decide it, reduce it to a selection, run it (spec 5.2.4, 5.9).

Always holds: an item of a batch is a work item whose id in the batch is the hash of its plan, so the approval binds
each action to its last argument; what was left out never runs; a selection needs an approval of its own. Opening cards
needs a process with that right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from apps.approvals.cards.lifecycle import withdraw_card
from apps.approvals.cards.schemas import AnswerRefused
from apps.approvals.enums import ApprovalScope, ApprovalVerdict, DeclineReason, Withdrawal
from apps.approvals.models import ApprovalToken, Card, Decision
from apps.approvals.tokens.payloads import approvable, batch_payload
from apps.approvals.tokens.schemas import Approvable
from apps.approvals.tokens.services import verify_token
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.work import rules, visitor_messages
from apps.work.enums import BatchStatus, WorkItemStatus, WorkReason
from apps.work.locks import lock_batch, lock_course, lock_item
from apps.work.models import Batch, BatchItem, WorkItem
from apps.work.queries import items_of, lines_of
from apps.work.services import batch_cards, completion, execution_queue, fresh_cards, outbox, preconditions, undo
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


def approvable_batch(batch: Batch) -> Approvable:
    """Return what an approval of the batch binds: its goal, its action, and its items in order."""
    ids = [line.item_id for line in lines_of(batch)]
    payload = batch_payload(goal_id=str(batch.goal_ref), action=batch.action, item_ids=ids)
    return approvable(ApprovalScope.CONNECTION_ACT, payload)


def open_batch(lines: Sequence[BatchItem], **fields: object) -> Batch:
    """Store a batch of these unsaved lines; no card is opened yet."""
    batch: Batch = Batch.objects.create(created_at=now(), **fields)
    for position, line in enumerate(lines, start=1):
        line.batch, line.position = batch, position
        WorkItem.objects.filter(pk=line.work_item_id).update(batch=batch)
    BatchItem.objects.bulk_create(lines)
    data = {"action": batch.action, "items": len(lines), "undo": batch.undo_of is not None}
    record(AuditEvent.BATCH_PROPOSED, subject=f"batch:{batch.pk}", data=data)
    return batch


def on_decided(card: Card, decision: Decision, token: ApprovalToken | None) -> None:
    """Act on the decision of a batch's card. In the transaction of the decision."""
    batch = lock_batch(card.subject_id)
    if batch.status != BatchStatus.PROPOSED:
        return
    if token is not None:
        _begin(batch, token, card)
    elif decision.verdict == ApprovalVerdict.DECLINED:
        _refuse(batch, BatchStatus.DECLINED, WorkReason.DECLINED, because=decision.decline_reason)


def on_card_ended(card: Card) -> None:
    """Reject a batch whose card expired or was withdrawn."""
    batch = lock_batch(card.subject_id)
    if batch.status == BatchStatus.PROPOSED:
        _refuse(batch, BatchStatus.EXPIRED, WorkReason.EXPIRED)


def replace_outdated_card(card: Card) -> Card | AnswerRefused | None:
    """Replace the batch's card instead of approving it, when the records of every line have changed, or of any line of
    an undo. When only some have, the others are approved (`_begin`)."""
    batch = lock_batch(card.subject_id)
    outdated = preconditions.outdated_lines(batch, card)
    if batch.undo_of is not None and outdated:
        return undo.offer_remaining_undo(batch, card, outdated)
    if not outdated or len(outdated) < lines_of(batch).count():
        return None
    withdraw_card(card.pk, reason=Withdrawal.REPLACED)
    rationale = fresh_cards.fresh_rationale(card.rationale)
    return batch_cards.open_batch_card(batch, instead_of=card, rationale=rationale)


def remove_item(item: WorkItem) -> None:
    """Take the item out for a card of its own; the batch continues without it."""
    if item.batch_id is None:
        return
    batch = lock_batch(item.batch_id)
    _detach(item)
    if batch.status == BatchStatus.RUNNING:
        _continue(batch)


def _detach(item: WorkItem) -> None:
    WorkItem.objects.filter(pk=item.pk).update(batch=None, approval_token=None)
    item.batch = item.approval_token = None


def _begin(batch: Batch, token: ApprovalToken, card: Card) -> None:
    """Spend the approval for exactly this batch and queue its items. Items whose records changed since the card was
    shown leave the batch for cards of their own."""
    verdict = verify_token(token, approvable_batch(batch))
    if not verdict.ok:
        _refuse(batch, BatchStatus.REFUSED, WorkReason.NOT_APPROVED)
        return
    Batch.objects.filter(pk=batch.pk).update(approval_token=token)
    batch.approval_token = token
    # Approved by someone who saw other values: each asks again by itself and does not hold up the rest.
    for line in preconditions.outdated_lines(batch, card):
        item = lock_item(line.work_item_id)
        _detach(item)
        record(AuditEvent.WORK_NOT_APPROVED, subject=f"work:{item.pk}", data={"reason": preconditions.CHANGED})
        fresh_cards.open_fresh_card(item)
    WorkItem.objects.filter(batch=batch).update(approval_token=token)
    _move(batch, BatchStatus.RUNNING)
    if batch.undo_of:
        undo.on_undo_approved(batch)
    _continue(batch)


def _continue(batch: Batch) -> None:
    """Queue what may run now: everything at once, or for an undo one after the other, stopping at the first that was
    not done. When nothing is left, finish the batch."""
    items = items_of(batch)
    remaining = [item for item in items if WorkItemStatus(item.status) not in rules.FINAL]
    broken = batch.undo_of and any(item.status != WorkItemStatus.DONE for item in items if item not in remaining)
    if not remaining or broken:
        _finish(batch)
        return
    waiting = [item for item in remaining if item.status == WorkItemStatus.PENDING]
    for item in waiting[:1] if batch.undo_of else waiting:
        # An item that was queued before is on its way; a second message would run it twice.
        if not lock_course(item).deliveries:
            execution_queue.enqueue(item)


def on_work_changed(item: WorkItem) -> None:
    """Continue the batch when one of its items has ended."""
    if WorkItemStatus(item.status) not in rules.FINAL or item.batch_id is None:
        return
    batch = lock_batch(item.batch_id)
    if batch.status == BatchStatus.RUNNING:
        _continue(batch)


def _finish(batch: Batch) -> None:
    _move(batch, BatchStatus.FINISHED)
    _end_items(batch, WorkReason.DEPENDENCY)
    if batch.undo_of is None:
        failed = next((item for item in items_of(batch) if item.status != WorkItemStatus.DONE), None)
        outbox.enqueue_result(batch.pk, trace_id=batch.trace_id, failed=failed)


def apply_selection(old: Card, new: Card) -> None:
    """Reduce the batch to the items of the new card, in the card's order; the rest never runs.

    Raises `SilasError("selection_unfit")` if the new card asks for anything but a part of this batch.
    """
    batch = lock_batch(new.subject_id)
    lines = list(lines_of(batch))
    kept = list(new.payload["item_ids"])
    is_part = set(kept) <= {line.item_id for line in lines} and len(set(kept)) == len(kept)
    if batch.status != BatchStatus.PROPOSED or not is_part or not 0 < len(kept) < len(lines):
        raise SilasError(ErrorCode.SELECTION_UNFIT, gettext("Select some of the items, but not all of them."))
    for line in lines:
        if line.item_id not in kept:
            line.delete()
            completion.end_item(lock_item(line.work_item_id), WorkItemStatus.BLOCKED, WorkReason.LEFT_OUT)
    # Positions are unique in a batch, so the new ones start after all of the old ones.
    for position, item_id in enumerate(kept, start=max(line.position for line in lines) + 1):
        BatchItem.objects.filter(batch=batch, item_id=item_id).update(position=position)
    record(AuditEvent.BATCH_CUT, subject=f"batch:{batch.pk}", data={"kept": len(kept), "of": len(lines)})


def _refuse(batch: Batch, status: BatchStatus, reason: WorkReason, *, because: DeclineReason | None = None) -> None:
    _move(batch, status)
    _end_items(batch, reason, told=visitor_messages.DECLINED_BECAUSE[because] if because else "")


def _end_items(batch: Batch, reason: WorkReason, *, told: StrOrPromise = "") -> None:
    """End the items that have not begun. The batch no longer runs, so their end does not affect it."""
    for item in items_of(batch):
        if item.status in (WorkItemStatus.PENDING, WorkItemStatus.PAUSED):
            completion.end_item(lock_item(item.pk), WorkItemStatus.BLOCKED, reason, result=told)


def _move(batch: Batch, status: BatchStatus) -> None:
    """Change the status; a batch is decided once. Raises `SilasError("batch_settled")`."""
    ended = {"finished_at": now()} if status != BatchStatus.RUNNING else {}
    # By the status that was read: of two decisions at once only the first moves it.
    if not Batch.objects.filter(pk=batch.pk, status=batch.status).update(status=status, **ended):
        raise SilasError(ErrorCode.BATCH_SETTLED)
    batch.status = status
    record(AuditEvent.BATCH_MOVED, subject=f"batch:{batch.pk}", data={"status": status.value})
