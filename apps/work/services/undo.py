"""Undo finished work by the inverse that the skill declares, within the undo window, once, with one press.

Always holds: an undo is a batch of ordinary work items, the last effect first, each approved, guarded, verified and
audited like any other; undo is never offered for what a skill does not declare as undoable (spec 0.5.5).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q

from apps.approvals.cards.lifecycle import withdraw_card
from apps.approvals.cards.schemas import AnswerRefused
from apps.approvals.enums import Withdrawal
from apps.approvals.models import Card
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.guard.schemas import call_digest
from apps.skills import queries as skills
from apps.skills import rules as skill_rules
from apps.skills.roles import inherited_skills
from apps.work.enums import WorkItemStatus, WorkReason
from apps.work.locks import lock_item
from apps.work.models import Batch, BatchItem, LedgerEntry, UndoEntry, WorkItem
from apps.work.provenance import Tracer, follow_up_tracer
from apps.work.queries import items_of, lines_of
from apps.work.schemas import WorkItemSpec
from apps.work.services import batch_cards, completion, outbox, screening
from apps.work.services.approval_requests import RequestedCall
from apps.work.services.items import create_item
from apps.work.services.plan_binding import Terms, bind_task
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.language import gettext_lazy
from kernel.provenance import Origin, Source, Traced, as_text
from kernel.stored_texts import stored_text
from llm.calls import PlannedCall, call_block

ACTION = "undo"
RECORDS_CHANGED = gettext_lazy("The records have changed since then, so this can't be undone. Nothing was changed.")
PARTLY_CHANGED = stored_text("Some records have changed since then and stay as they are. The rest can still be undone.")
_TITLE_CHARS = 280


def record_undo(item: WorkItem) -> UndoEntry | None:
    """Store how to undo a finished item; None unless its skills declare an inverse for every call."""
    calls = _inverse(item)
    if not calls:
        return None
    moment = now()
    entry: UndoEntry = UndoEntry.objects.create(
        work_item=item,
        calls=[{"tool": call.tool, "args": call.args} for call in calls],
        summary=item.title,
        created_at=moment,
        expires_at=moment + timedelta(seconds=settings.UNDO_SECONDS),
    )
    return entry


def _inverse(item: WorkItem) -> list[PlannedCall]:
    """Return the inverse of each call in the order of the calls; empty if one of them has none."""
    spec, tools = item.spec, screening.tools_in(item.spec.skills)
    answers = {
        entry.args_digest: entry.value
        for entry in LedgerEntry.objects.filter(attempt__work_item=item, success=True).order_by("created_at")
    }
    inverse = []
    for call in spec.calls:
        tool = tools[call.tool]
        args = skill_rules.undo_args(tool, call.args, answers.get(call_digest(call.tool, call.args), {}))
        if tool.undo is None or args is None or skill_rules.argument_problem(tools[tool.undo.tool], args):
            return []
        inverse.append(PlannedCall(tool.undo.tool, args))
    return inverse


def offer_undo(subject_id: UUID) -> Batch | None:
    """Show the results of a batch or an item with the button that undoes them. In a process that may open cards; once
    per subject."""
    batch = Batch.objects.filter(pk=subject_id).first()
    items = items_of(batch) if batch else list(WorkItem.objects.filter(pk=subject_id))
    unused = UndoEntry.objects.filter(work_item__in=items, undone_by=None)
    entries = list(unused.select_related("work_item").order_by("created_at", "pk"))
    # All of them can be undone until the last one expires.
    if entries and now() > _window_end(entries):
        entries = []
    reads = _records_left_by(entries)
    entries = [
        entry for entry in entries if not skills.have_changed(reads[entry.work_item_id], entry.work_item.subject)
    ]
    if not entries:
        return None
    undo = _undo_batch(subject_id, batch or items[0], entries)
    if undo is None:
        return None
    # A card expires at `until` (exclusive), while the undo window includes its last moment.
    batch_cards.open_results_card(undo, items, reads=reads, until=_window_end(entries) + timedelta(microseconds=1))
    record(AuditEvent.UNDO_OFFERED, subject=f"batch:{undo.pk}", data={"items": len(entries)})
    return undo


def offer_remaining_undo(undo: Batch, card: Card, outdated: Sequence[BatchItem]) -> Card | AnswerRefused:
    """Records that an undo would restore have changed since its card was shown: they stay as they are, and the rest is
    offered by another card for the same time. If nothing is left, the undo is refused."""
    if len(outdated) == lines_of(undo).count():
        withdraw_card(card.pk, reason=Withdrawal.OUTDATED)
        return AnswerRefused(ErrorCode.RECORDS_CHANGED, str(RECORDS_CHANGED))
    withdraw_card(card.pk, reason=Withdrawal.REPLACED)
    for line in outdated:
        line.delete()
        completion.end_item(lock_item(line.work_item_id), WorkItemStatus.BLOCKED, WorkReason.LEFT_OUT)
    done = [line.work_item.follow_up_of for line in lines_of(undo)]
    entries = list(
        UndoEntry.objects.filter(work_item__in=done).select_related("work_item").order_by("created_at", "pk")
    )
    items = [entry.work_item for entry in entries]
    return batch_cards.open_results_card(
        undo,
        items,
        reads=_records_left_by(entries),
        until=card.expires_at,
        instead_of=card,
        rationale=PARTLY_CHANGED,
    )


def _records_left_by(entries: Sequence[UndoEntry]) -> dict[UUID, list[dict[str, object]]]:
    """Return, by finished item, the records that it changed, at the revisions at which it and later items of the same
    entries left them. `entries` are in execution order."""
    records: dict[UUID, list[dict[str, object]]] = {}
    later: list[tuple[str, str]] = []
    for entry in reversed(entries):
        ledger = LedgerEntry.objects.filter(attempt__work_item=entry.work_item, success=True).order_by("created_at")
        changes = [
            (change["book"], change["key"], change["revision"])
            for ledger_entry in ledger
            for change in ledger_entry.left
        ]
        newest = {(book, key): revision for book, key, revision in changes}
        records[entry.work_item_id] = [
            {"book": book, "key": key, "revision": revision + later.count((book, key))}
            for (book, key), revision in sorted(newest.items())
        ]
        later += [(book, key) for book, key, _ in changes]
    return records


def _window_end(entries: Sequence[UndoEntry]) -> datetime:
    """The window of a batch is that of its last item."""
    return max(entry.expires_at for entry in entries)


def _undo_batch(subject_id: UUID, source: Batch | WorkItem, entries: Sequence[UndoEntry]) -> Batch | None:
    """Create the batch of inverse actions, the last effect first; None if one exists already."""
    lines = [_line(entry) for entry in reversed(entries)]
    moment = now()
    try:
        # A savepoint: the unique row says that an undo was made already, and the caller's transaction goes on.
        with transaction.atomic():
            undo: Batch = Batch.objects.create(
                goal_ref=subject_id,
                undo_of=subject_id,
                deployment_id=source.deployment_id,
                action=ACTION,
                requested_by="system",
                trace_id=source.trace_id,
                created_at=moment,
            )
    except IntegrityError:
        return None
    for position, line in enumerate(lines, start=1):
        line.batch, line.position = undo, position
        WorkItem.objects.filter(pk=line.work_item_id).update(batch=undo)
    BatchItem.objects.bulk_create(lines)
    return undo


def _line(entry: UndoEntry) -> BatchItem:
    """Create the work item that undoes this entry, as a line of the undo batch."""
    spec = _spec(entry)
    done = entry.work_item
    item = create_item(
        spec,
        deployment_id=done.deployment_id,
        session_id=None,
        trace_id=done.trace_id,
        subject=done.subject,
        requested_by="system",
    )
    return BatchItem(work_item=item, item_id=item.plan_hash, title=item.title)


def _spec(entry: UndoEntry) -> WorkItemSpec:
    """Return an ordinary task: the inverse calls, the last one first, with the checks that their skill declares."""
    done = entry.work_item
    calls = [PlannedCall(call["tool"], call["args"]) for call in reversed(entry.calls)]
    tools = screening.tools_in(done.spec.skills)
    body = "\n\n".join(["Undo what was done, exactly as the skill says.", *(call_block(call) for call in calls)])
    plan = WorkItemSpec(id=str(uuid4()), type="task", title=ACTION, body=body)
    requested = [RequestedCall(call, tools[call.tool]) for call in calls]
    title = f"Undo: {done.title}"[:_TITLE_CHARS]
    return bind_task(
        plan,
        requested,
        Terms(done.subject, inherits=inherited_skills(done.spec.skills), tracing=_tracing(done)),
        title=title,
        follow_up_of=str(done.pk),
    )


def _tracing(done: WorkItem) -> Tracer:
    """The inverse uses the values of the original call, which keep their origins, and what its tool answered."""
    answers = LedgerEntry.objects.filter(attempt__work_item=done, success=True)
    outside = any(tool.is_outside for tool in screening.tools_in(done.spec.skills).values())
    origin = Traced(Origin.TOOL, label="the answer of the tool") if outside else Traced(Origin.RECORDS)
    sources = (Source(origin, as_text(entry.value)) for entry in answers)
    return follow_up_tracer(done.spec, *sources, started=Traced(Origin.STAFF), otherwise=Traced(Origin.AUTHOR))


def on_work_changed(item: WorkItem) -> None:
    """Offer undo for finished work whose skill declares it."""
    if item.status != WorkItemStatus.DONE or not item.spec.calls:
        return
    if item.batch is not None and item.batch.undo_of is not None:
        return
    entry = record_undo(item)
    if entry is not None and item.batch is None and not item.is_part:
        outbox.enqueue_result(item.pk, trace_id=item.trace_id)


def on_undo_approved(undo: Batch) -> None:
    """Mark what is undone, so that it happens once, and link the undo to the conversation that waited for the work."""
    for line in lines_of(undo):
        done_id = line.work_item.follow_up_of_id
        # Conditional: what another undo has taken stays with that one.
        UndoEntry.objects.filter(work_item=done_id, undone_by=None).update(undone_by=undo)
        session_id = WorkItem.objects.filter(Q(pk=done_id)).values_list("session_id", flat=True).first()
        WorkItem.objects.filter(pk=line.work_item_id).update(session_id=session_id)
    record(AuditEvent.UNDO_BEGUN, subject=f"batch:{undo.pk}", data={"items": undo.items.count()})
