"""How is what was done taken back? By the inverse that the skill declared, within the window, once, by one tap.

Always holds: an undo is a batch of ordinary work items, the last effect first, each of them approved, guarded, proved
and audited like anything else; what a skill does not declare as undoable is never offered (spec 0.5.5).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.db import IntegrityError, transaction

from apps.approvals.enums import Withdrawal
from apps.approvals.models import Card
from apps.approvals.schemas import Refused
from apps.approvals.services import withdraw_card
from apps.approvals.signals import Fresh
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
from kernel.llm.calls import PlannedCall, call_block
from kernel.provenance import Origin, Source, Traced, as_text

ACTION = "undo"
RECORDS_CHANGED = "The records have changed since this was done, so it can't be undone. Nothing was changed."
PARTLY_CHANGED = "Some records have changed since this was done and stay as they are. The rest can still be taken back."
_TITLE_CHARS = 280


def record_undo(item: WorkItem) -> UndoEntry | None:
    """Write down how to take a finished item back; None when its skills do not say how for every call of it."""
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
    """The inverse of each call, the first made first; empty when one of them has none."""
    spec, tools = item.spec, screening.tools_in(item.spec.skills)
    answers = {
        entry.args_digest: entry.value
        for entry in LedgerEntry.objects.filter(attempt__work_item=item, success=True).order_by("created_at")
    }
    found = []
    for call in spec.calls:
        tool = tools[call.tool]
        args = skill_rules.undo_args(tool, call.args, answers.get(call_digest(call.tool, call.args), {}))
        if tool.undo is None or args is None or skill_rules.argument_problem(tools[tool.undo.tool], args):
            return []
        found.append(PlannedCall(tool.undo.tool, args))
    return found


def offer_undo(subject_id: UUID) -> Batch | None:
    """Show what a batch or an item came to, with the button that takes it back. In a web process; once a subject."""
    batch = Batch.objects.filter(pk=subject_id).first()
    items = items_of(batch) if batch else list(WorkItem.objects.filter(pk=subject_id))
    entries = _usable(items)
    reads = _left_by(entries)
    entries = [entry for entry in entries if not skills.have_changed(reads[entry.work_item_id], _whose(entry))]
    if not entries:
        return None
    undo = _undo_batch(subject_id, batch or items[0], entries)
    if undo is None:
        return None
    # A card is closed from its end on; the window includes its own.
    batch_cards.open_results_card(undo, items, reads=reads, until=_window_end(entries) + timedelta(microseconds=1))
    record(AuditEvent.UNDO_OFFERED, subject=f"batch:{undo.pk}", data={"items": len(entries)})
    return undo


def offer_remaining_undo(undo: Batch, card: Card, outdated: Sequence[BatchItem], fresh: Fresh) -> None:
    """Records that an undo would put back have changed since its card was shown: they stay as they are now, and the
    rest is offered by another card for the same time. Where nothing is left, the undo is refused."""
    if len(outdated) == lines_of(undo).count():
        withdraw_card(card.pk, reason=Withdrawal.OUTDATED)
        fresh.refused = Refused("records_changed", RECORDS_CHANGED)
        return
    withdraw_card(card.pk, reason=Withdrawal.REPLACED)
    for line in outdated:
        line.delete()
        completion.end_item(lock_item(line.work_item_id), WorkItemStatus.BLOCKED, WorkReason.LEFT_OUT)
    done = [line.work_item.follow_up_of for line in lines_of(undo)]
    entries = list(
        UndoEntry.objects.filter(work_item__in=done).select_related("work_item").order_by("created_at", "pk")
    )
    items = [entry.work_item for entry in entries]
    fresh.card = batch_cards.open_results_card(
        undo, items, reads=_left_by(entries), until=card.expires_at, instead_of=card, rationale=PARTLY_CHANGED
    )


def _left_by(entries: Sequence[UndoEntry]) -> dict[UUID, list[dict[str, Any]]]:
    """By the done item, the records that it changed, at the revisions at which it and what was done after it, of the
    same entries, left them. `entries` in the order in which it was done."""
    found: dict[UUID, list[dict[str, Any]]] = {}
    later: list[tuple[str, str]] = []
    for entry in reversed(entries):
        ledger = LedgerEntry.objects.filter(attempt__work_item=entry.work_item, success=True).order_by("created_at")
        changes = [(each["book"], each["key"], each["revision"]) for one in ledger for each in one.left]
        newest = {(book, key): revision for book, key, revision in changes}
        found[entry.work_item_id] = [
            {"book": book, "key": key, "revision": revision + later.count((book, key))}
            for (book, key), revision in sorted(newest.items())
        ]
        later += [(book, key) for book, key, _ in changes]
    return found


def _whose(entry: UndoEntry) -> str:
    return str(entry.work_item.subject)


def _usable(items: Sequence[WorkItem]) -> list[UndoEntry]:
    """What can still be taken back, in the order in which it was done: all of it, for as long as the last of it."""
    found = UndoEntry.objects.filter(work_item__in=items, undone_by=None)
    entries = list(found.select_related("work_item").order_by("created_at", "pk"))
    return entries if entries and now() <= _window_end(entries) else []


def _window_end(entries: Sequence[UndoEntry]) -> datetime:
    """A batch is executed once its last item is: its window is that item's."""
    return max(entry.expires_at for entry in entries)


def _undo_batch(subject_id: UUID, source: Batch | WorkItem, entries: Sequence[UndoEntry]) -> Batch | None:
    """The reverse actions, the last effect first; None when somebody was faster."""
    lines = [_line(entry) for entry in reversed(entries)]
    moment = now()
    try:
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
    """An ordinary task: the inverse calls, the last one first, with the checks that their skill declares."""
    done = entry.work_item
    calls = [PlannedCall(call["tool"], call["args"]) for call in reversed(entry.calls)]
    tools = screening.tools_in(done.spec.skills)
    body = "\n\n".join(["Take back what was done, exactly as the skill says.", *(call_block(call) for call in calls)])
    plan = WorkItemSpec(id=str(uuid4()), type="task", title=ACTION, body=body)
    wanted = [RequestedCall(call, tools[call.tool]) for call in calls]
    title = f"Undo: {done.title}"[:_TITLE_CHARS]
    return bind_task(
        plan,
        wanted,
        Terms(done.subject, inherits=inherited_skills(done.spec.skills), tracing=_tracing(done)),
        title=title,
        follow_up_of=str(done.pk),
    )


def _tracing(done: WorkItem) -> Tracer:
    """The skill says how to take its own effect back: with the values of the call, which keep their origins, and with
    what its tool answered."""
    answers = LedgerEntry.objects.filter(attempt__work_item=done, success=True)
    outside = any(tool.is_outside for tool in screening.tools_in(done.spec.skills).values())
    origin = Traced(Origin.TOOL, label="the answer of the tool") if outside else Traced(Origin.RECORDS)
    told = (Source(origin, as_text(entry.value)) for entry in answers)
    return follow_up_tracer(done.spec, *told, started=Traced(Origin.STAFF), otherwise=Traced(Origin.AUTHOR))


def on_work_changed(item: WorkItem) -> None:
    """Something is done: if its skill says how to take it back, a person is offered that."""
    if item.status != WorkItemStatus.DONE or not item.spec.calls:
        return
    if item.batch is not None and item.batch.undo_of is not None:
        return
    entry = record_undo(item)
    if entry is not None and item.batch is None and not item.is_part:
        outbox.enqueue_result(item.pk, trace_id=item.trace_id)


def on_undo_approved(undo: Batch) -> None:
    """The yes to an undo: what it takes back is taken back once, and whoever waited for it is told."""
    for line in lines_of(undo):
        done_id = line.work_item.follow_up_of_id
        UndoEntry.objects.filter(work_item=done_id, undone_by=None).update(undone_by=undo)
        told = WorkItem.objects.filter(pk=done_id).values_list("session_id", flat=True).first()
        WorkItem.objects.filter(pk=line.work_item_id).update(session_id=told)
    record(AuditEvent.UNDO_BEGUN, subject=f"batch:{undo.pk}", data={"items": undo.items.count()})
