"""Compare the records that an approval rests on with what its card showed.

Always holds: nothing runs on an approval whose records have changed since. This is checked when a person approves
(`fresh_cards`, `batches`), when work begins, and in the transaction that carries out its first change
(`skills.services.apply_changes`). Inside a scope.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from apps.approvals import queries as cards
from apps.approvals.enums import ApprovalScope
from apps.approvals.models import ApprovalToken, Card
from apps.approvals.rules import FACE
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.guard import services as guard
from apps.guard.enums import RunStatus, TerminalReason
from apps.skills import queries as skills
from apps.work.enums import WorkItemStatus
from apps.work.models import Batch, BatchItem, LedgerEntry, WorkItem
from apps.work.services import outbox, screening
from apps.work.services.approval_requests import WORK_ITEM, card_reads_of
from apps.work.services.batch_cards import BATCH, reads_of_line
from apps.work.services.items import move
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError

CHANGED = "record_changed"
Reads = Sequence[Mapping[str, Any]]


def expected_reads(item: WorkItem) -> Reads:
    """Return the records that the item's approval rests on, at the revisions that they must have now; none once the
    item has had an effect, and none under a standing approval. Changes by the same project or undo, which run in an
    approved order, are counted in.

    Raises `SilasError("card_mismatch")` if no card shows what was signed.
    """
    token = item.approval_token
    # After its first effect the item's own changes would look like another's.
    if token is None or token.scope == ApprovalScope.STANDING or FACE not in token.conditions or _has_begun(item):
        return ()
    reads = _reads_of(item, token)
    steps = [] if not reads else _own_changes(item)
    return [{**read, "revision": read["revision"] + steps.count((read["book"], read["key"]))} for read in reads]


def _reads_of(item: WorkItem, token: ApprovalToken) -> Reads:
    """Return what the approved card showed of the item's records: its own card, its batch's or its project's."""
    own = token.work_item_id == str(item.pk)
    if item.batch_id is not None and not own:
        return reads_of_line(_card_of(BATCH, item.batch_id, token), item.plan_hash)
    project_id = item.parent_id if item.is_part and not own else None
    card_reads: Reads = _card_of(WORK_ITEM, project_id or item.pk, token).reads
    if project_id is None:
        return card_reads
    calls = screening.resolve_calls(item.spec.calls, screening.tools_in(item.spec.skills))
    own_records = {(read["book"], read["key"]) for read in card_reads_of(calls, item.subject)}
    return [read for read in card_reads if (read["book"], read["key"]) in own_records]


def _card_of(subject_kind: str, subject_id: UUID, token: ApprovalToken) -> Card:
    card = cards.approved_card(subject_kind, subject_id, str(token.conditions[FACE]))
    if card is None:
        raise SilasError(ErrorCode.CARD_MISMATCH, status=409)
    return card


def _has_begun(item: WorkItem) -> bool:
    return bool(LedgerEntry.objects.filter(attempt__work_item=item, success=True).exists())


def _own_changes(item: WorkItem) -> list[tuple[str, str]]:
    """Return the records that this project, or this undo, has changed itself, once for each change."""
    if item.is_part:
        own = LedgerEntry.objects.filter(attempt__work_item__parent=item.parent_id, success=True)
    elif is_undo(item):
        own = LedgerEntry.objects.filter(attempt__work_item__batch=item.batch_id, success=True)
    else:
        return []
    return [(change["book"], change["key"]) for changes in own.values_list("left", flat=True) for change in changes]


def is_undo(item: WorkItem) -> bool:
    return item.batch is not None and item.batch.undo_of is not None


def is_outdated(item: WorkItem) -> bool:
    """Whether the records have changed since the approval. Raises what `expected_reads` raises."""
    return skills.have_changed(expected_reads(item), item.subject)


def outdated_lines(batch: Batch, card: Card) -> list[BatchItem]:
    """Return the lines of a batch whose records are not as its card shows them."""
    lines = BatchItem.objects.filter(batch=batch).select_related("work_item").order_by("position")
    return [line for line in lines if skills.have_changed(reads_of_line(card, line.item_id), line.work_item.subject)]


def return_for_approval(item: WorkItem) -> None:
    """Drop the unused approval: the locked item waits for a person again, and a fresh card is requested."""
    # There is no move from running to pending.
    if item.status == WorkItemStatus.RUNNING:
        move(item, WorkItemStatus.PAUSED)
    if item.run_id is not None:
        guard.close_run(item.run_id, status=RunStatus.FAILED, reason=TerminalReason.APPROVAL_MISSING)
    WorkItem.objects.filter(pk=item.pk).update(approval_token=None, run_id=None, updated_at=now())
    item.approval_token = item.run_id = None
    if item.status == WorkItemStatus.PAUSED:
        move(item, WorkItemStatus.PENDING)
    record(AuditEvent.WORK_NOT_APPROVED, subject=f"work:{item.pk}", data={"reason": CHANGED})
    outbox.enqueue_fresh_card(item)
