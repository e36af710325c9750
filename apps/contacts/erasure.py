"""Erase everything about one person, in short steps that survive a crash; a receipt says what was erased and kept.

What belongs to the person is found once, when the erasure is requested (`Erasure.person`). A worker first cancels their
open work and withdraws the cards that are open: nothing is approved any more in the name of a person who asked to be
erased, and waiting for a decision would let a colleague delay the erasure. It then erases what is stored kind by kind;
each step counts what it erased in the transaction that erases it, so a step that is repeated finds nothing
left to do. The last step holds the locks of all their conversations: what was written before it is erased, and what is
written after it is new. The audit log stays whole: its last entry about the person holds the digest of the receipt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from enum import Enum
from typing import Any
from uuid import UUID

from django.apps import apps
from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now
from django.utils.translation import override

from apps.approvals.cards.lifecycle import expire_card, withdraw_card
from apps.approvals.enums import Withdrawal
from apps.approvals.models import OPEN_STATUSES, Card
from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.audit.queries import proof_of
from apps.audit.services import record
from apps.bus.deliveries import Delivery
from apps.bus.enums import Kind
from apps.bus.models import QueueMessage
from apps.bus.services import enqueue
from apps.contacts.enums import ErasureState
from apps.contacts.models import Contact, ContactIdentity, ContactMerge, ContactNote, Erasure
from apps.contacts.person_export import Person, lock_erasure_requests, lock_person, running_erasure_of
from apps.contacts.personal_data import EXPORTED, KEPT, KEPT_OF_CONVERSATIONS, KEPT_OF_LOG, Exported, kind_of
from apps.knowledge import gaps
from apps.memory import memories
from apps.sessions import levels, retention, turn_pauses
from apps.sessions.enums import TurnStatus
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession, Turn
from apps.tenants.models import Tenant
from apps.visitors import file_storage
from apps.visitors.enums import TranscriptState
from apps.work.enums import WorkItemStatus, WorkItemType
from apps.work.models import WorkItem
from apps.work.queries import OPEN as OPEN_WORK
from apps.work.services.cancellation import cancel_for_staff
from kernel import trust
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.tenancy import current_tenant_id, in_scope

FORMAT, VERSION = "silas-erasure", 1
CERTIFICATE = "erasure_receipt"
_ROWS, _CONVERSATIONS = 500, 20
_WAIT_SECONDS = 5
# Erases at most `_ROWS` rows of a kind; returns how many.
Eraser = Callable[[Person, Exported], int]


class Progress(Enum):
    """`WAITS`: an answer is being written in one of the conversations, work has not yet reached the tool call at which
    it stops, or the person's data is being exported."""

    MORE = "more"
    WAITS = "waits"
    ENDED = "ended"


def request_erasure(person: Person, *, actor: str) -> Erasure:
    """Begin to erase a person's data, or continue an erasure that stopped; inside a scope. Requested twice, it is one,
    also when the person is known by another conversation the second time; what became theirs since is erased too.

    Raises 409 `erasure_running` for a person of whom an erasure that runs covers only a part.
    """
    lock_erasure_requests()
    row = running_erasure_of(person)
    if row is not None and not Person.of(row.person).covers(person):
        row = _widen(row, person, actor=actor)
    is_new = row is None
    if row is None:
        row = Erasure.objects.create(
            reference=person.reference, person=person.as_kept(), requested_by=actor, created_at=now()
        )
        record(AuditEvent.PERSON_ERASURE_STARTED, actor=actor, subject=row.reference, data={"erasure": str(row.pk)})
    stopped = Erasure.objects.filter(pk=row.pk, state=ErasureState.STOPPED).update(state=ErasureState.RUNNING)
    if is_new or stopped:
        enqueue(Kind.PERSON_ERASURE, scope_id=row.pk)
    row.refresh_from_db()
    return row


def _widen(row: Erasure, person: Person, *, actor: str) -> Erasure | None:
    """Let the erasure cover the person as they are known now; None if it has ended meanwhile. A step that runs is
    waited for: each step reads again what is covered."""
    rows = Erasure.objects.select_for_update(of=("self",), no_key=True)
    locked: Erasure | None = rows.filter(pk=row.pk, ended_at=None).first()
    if locked is not None:
        locked.person = Person.of(locked.person).widened(person).as_kept()
        locked.save(update_fields=["person"])
        record(AuditEvent.PERSON_ERASURE_STARTED, actor=actor, subject=row.reference, data={"erasure": str(row.pk)})
    return locked


def erasure_by_id(erasure_id: UUID) -> Erasure:
    """Raises `NotFound`."""
    row: Erasure | None = Erasure.objects.filter(pk=erasure_id).first()
    if row is None:
        raise NotFound()
    return row


def newest_erasures(limit: int = 50) -> list[Erasure]:
    return list(Erasure.objects.defer("person", "receipt")[:limit])


def running_erasure(reference: str) -> Erasure | None:
    row: Erasure | None = Erasure.objects.filter(reference=reference, ended_at=None).first()
    return row


def signed_receipt(erasure_id: UUID) -> dict[str, Any]:
    """The receipt with the signature of the installation key, the audit entry that holds its digest, and the first
    checkpoint after that entry (docs/audit-format.md). Raises `NotFound`, 409 `erasure_running`."""
    row = erasure_by_id(erasure_id)
    if row.receipt is None or row.entry_id is None:
        raise SilasError(ErrorCode.ERASURE_RUNNING)
    chain = current_tenant_id()
    proof = proof_of(chain, AuditEntry.objects.get(chain=chain, entry_id=row.entry_id).seq)
    assert proof is not None
    return {
        "format": FORMAT,
        "version": VERSION,
        "receipt": row.receipt,
        "key": trust.root_of(settings.SILAS_SIGNING_KEY) if settings.SILAS_SIGNING_KEY else "",
        "signature": trust.certify(CERTIFICATE, row.receipt),
        "entry": asdict(proof.entry),
        "checkpoint": asdict(proof.checkpoint) if proof.checkpoint else None,
    }


# -- the trusted worker ------------------------------------------------------------------------------------------------


async def erase(delivery: Delivery) -> None:
    """Erase in steps, each in a transaction of its own; started again after a crash, it goes on where it was."""
    erasure_id = UUID(delivery.message.subject)
    while (progress := await in_scope(delivery.tenant_id, erase_some, erasure_id)) is Progress.MORE:
        pass
    if progress is Progress.WAITS:
        await in_scope(delivery.tenant_id, delivery.defer, _WAIT_SECONDS, "person_busy")


def stop(message: QueueMessage) -> bool:
    """Mark the erasure of a dead message as stopped; the owners are notified."""
    Erasure.objects.filter(pk=UUID(message.subject), ended_at=None).update(state=ErasureState.STOPPED)
    return False


def erase_some(erasure_id: UUID) -> Progress:
    """Take one step; inside a scope."""
    rows = Erasure.objects.select_for_update(of=("self",), no_key=True)
    row: Erasure | None = rows.filter(pk=erasure_id, ended_at=None).first()
    if row is None:
        return Progress.ENDED
    person = Person.of(row.person)
    if not lock_person(person, shared=False):
        return Progress.WAITS
    if (stopping := _stop_work(row, person)) is not None:
        return stopping
    if _erase_rows(row, person) or _erase_conversations(row, person):
        return Progress.MORE
    sessions = ChatSession.objects.filter(pk__in=[*person.sessions, *person.shared])
    locked = list(sessions.select_for_update(of=("self",), no_key=True).order_by("pk"))
    if Turn.objects.filter(session_id__in=[each.pk for each in locked], status=TurnStatus.RUNNING).exists():
        return Progress.WAITS
    # What was written, requested or proposed since it was erased.
    is_due = _conversations_due(row, person).exists() or _open_work(person).exists() or _open_cards(person).exists()
    if is_due or _erase_rows(row, person):
        return Progress.MORE
    _end(row, person)
    return Progress.ENDED


def _stop_work(row: Erasure, person: Person) -> Progress | None:
    """Cancel one open work item with its cards, or else withdraw one open card; None when there are none."""
    # Running work that was cancelled already stops at its next tool call.
    item = _open_work(person).exclude(status=WorkItemStatus.RUNNING, course__cancelled_by__gt="").first()
    if item is not None:
        try:
            with transaction.atomic():
                cancel_for_staff(item.pk, user=None, actor=row.requested_by)
        except SilasError as error:
            if error.code != ErrorCode.WORK_SETTLED:  # it ended meanwhile
                raise
        return Progress.MORE
    if _open_work(person).exists():
        return Progress.WAITS
    card = _open_cards(person).first()
    if card is None:
        return None
    if card.is_open:
        withdraw_card(card.pk, reason=Withdrawal.CANCELLED, actor=row.requested_by)
    else:
        expire_card(card.pk)
    return Progress.MORE


def _open_work(person: Person) -> QuerySet[WorkItem]:
    """Projects before their tasks, which end with them."""
    rows = person.rows(kind_of("work.WorkItem")).filter(status__in=OPEN_WORK)
    return rows.exclude(type=WorkItemType.GOAL).order_by("type", "pk")


def _open_cards(person: Person) -> QuerySet[Card]:
    return person.rows(kind_of("approvals.Card")).filter(status__in=OPEN_STATUSES)


def _erase_rows(row: Erasure, person: Person) -> bool:
    """Erase a batch of the first kind of which there is something left; True if there was."""
    for kind in EXPORTED:
        if (eraser := ERASERS.get(kind.model)) and (count := eraser(person, kind)):
            row.counts[kind.file] = row.counts.get(kind.file, 0) + count
            row.save(update_fields=["counts"])
            return True
    return False


def _conversations_due(row: Erasure, person: Person) -> QuerySet[ChatSession]:
    """Conversations of this person alone that were not forgotten since the request, or written in since."""
    due = Q(forgotten_at=None) | Q(forgotten_at__lt=row.created_at) | Q(forgotten_at__lt=F("last_active_at"))
    due |= ~Q(customer="", last_customer="")
    rows: QuerySet[ChatSession] = ChatSession.objects.filter(due, pk__in=person.sessions).order_by("pk")
    return rows


def _erase_conversations(row: Erasure, person: Person) -> bool:
    """Erase what every room holds of the next conversations, and end the verified identity in them."""
    ids = list(_conversations_due(row, person).values_list("pk", flat=True)[:_CONVERSATIONS])
    for session_id in ids:
        turn_pauses.withdraw_pauses(session_id, reason=Withdrawal.STAFF, actor=row.requested_by)
    sessions = [lock_session(session_id) for session_id in ids]
    for session in sessions:
        _end_identity(session)
    retention.forget_conversations(sessions)
    return bool(ids)


def _end_identity(session: ChatSession) -> None:
    levels.end(session)
    session.customer, session.last_customer, session.customer_name = "", "", ""
    session.save(update_fields=["customer", "last_customer", "customer_name"])


def _end(row: Erasure, person: Person) -> None:
    """Erase who the person was, and write the receipt. The locks of their conversations are held."""
    kept = _kept(person)
    for session_id in person.shared:
        session = lock_session(session_id)
        retention.forget_remembered(session)
        session.save(update_fields=["preview", "focus"])
        if session.whose in person.customers:
            session.attributes = {}
            session.save(update_fields=["attributes"])
            _end_identity(session)
    theirs = Contact.objects.filter(pk__in=person.contacts)
    notes, _ = ContactNote.objects.filter(contact_id__in=person.contacts).delete()
    identities, _ = ContactIdentity.objects.filter(contact_id__in=person.contacts).delete()
    ContactMerge.objects.filter(Q(kept_id__in=person.contacts) | Q(merged_id__in=person.contacts)).delete()
    # Also of one that was merged in since, which the request did not find: it stays, as a contact of its own.
    Contact.objects.filter(Q(pk__in=person.contacts) | Q(merged_into__in=person.contacts)).update(merged_into=None)
    contacts = theirs.count()
    theirs.delete()
    ends = {"contacts": contacts, "identities": identities, "notes": notes, "conversations": len(person.sessions)}
    row.counts = {name: count for name, count in sorted({**row.counts, **ends}.items()) if count}
    row.state, row.person, row.ended_at = ErasureState.DONE, {}, now()
    row.receipt = {
        "erasure": str(row.pk),
        "company": Tenant.objects.get(pk=current_tenant_id()).slug,
        "chain": str(current_tenant_id()),
        "person": row.reference,
        "requested_by": row.requested_by,
        "requested_at": row.created_at.isoformat(),
        "erased_at": row.ended_at.isoformat(),
        "erased": row.counts,
        "kept": kept,
    }
    data = {"erasure": str(row.pk), "receipt": sha256_hex(row.receipt), "rows": sum(row.counts.values())}
    row.entry_id = record(AuditEvent.PERSON_ERASED, actor=row.requested_by, subject=row.reference, data=data)
    row.save()


def _kept(person: Person) -> list[dict[str, object]]:
    """What stays of each kind, how much and why, in English: the receipt is one text in every language."""
    counts = {kind.file: (person.rows(kind).count(), KEPT[kind.model]) for kind in EXPORTED if kind.model in KEPT}
    entries = apps.get_model("silas_sessions.ChronicleEntry")._default_manager.filter(session_id__in=person.sessions)
    counts["places_of_messages"] = entries.count(), KEPT_OF_CONVERSATIONS
    counts["audit_log"] = person.audit_entries().count(), KEPT_OF_LOG
    with override("en"):
        return [{"kind": name, "count": many, "why": str(why)} for name, (many, why) in counts.items() if many]


# -- how each kind is erased -------------------------------------------------------------------------------------------


def _batch(rows: QuerySet[Any]) -> list[UUID]:
    return list(rows.order_by("pk").values_list("pk", flat=True)[:_ROWS])


def _rows_of(kind: Exported, ids: Iterable[UUID]) -> QuerySet[Any]:
    rows: QuerySet[Any] = apps.get_model(kind.model)._default_manager.filter(pk__in=ids)
    return rows


def _delete(person: Person, kind: Exported) -> int:
    return _delete_batch(kind, person.rows(kind))


def _delete_batch(kind: Exported, rows: QuerySet[Any]) -> int:
    ids = _batch(rows)
    if ids:
        _rows_of(kind, ids).delete()
    return len(ids)


def _clear(**values: object) -> Eraser:
    """Keep the rows, and set these fields of them."""

    def eraser(person: Person, kind: Exported) -> int:
        ids = _batch(person.rows(kind).exclude(**values))
        if ids:
            _rows_of(kind, ids).update(**values)
        return len(ids)

    return eraser


def _erase_messages(person: Person, kind: Exported) -> int:
    turns = person.in_conversations("session_id", "started_at")
    Turn.objects.filter(turns).exclude(read_as=None).exclude(read_as=retention.FORGOTTEN).update(
        read_as=retention.FORGOTTEN
    )
    ids = _batch(person.rows(kind).filter(pk__in=retention.entries_with_words().values("pk")))
    return retention.erase_words(_rows_of(kind, ids)) if ids else 0


def _erase_prompts(person: Person, kind: Exported) -> int:
    """As retention leaves them: what was asked and answered is gone, and that something was asked stays."""
    ids = _batch(person.rows(kind).exclude(payload={}, chosen="", sealed=None, answers={}))
    return int(_rows_of(kind, ids).update(payload={}, chosen="", sealed=None, answers={})) if ids else 0


def _erase_files(person: Person, kind: Exported) -> int:
    rows = list(person.rows(kind).defer("text").order_by("pk")[:_ROWS])
    _rows_of(kind, [file.pk for file in rows]).delete()
    file_storage.delete_on_commit(file.stored_name for file in rows)
    return len(rows)


def _erase_transcripts(person: Person, kind: Exported) -> int:
    """An address is kept only until the transcript was sent."""
    unsent = person.rows(kind).filter(state=TranscriptState.OWED).order_by()
    return int(unsent.update(state=TranscriptState.GIVEN_UP, address="", settled_at=Now()))


def _erase_addresses(person: Person, kind: Exported) -> int:
    """Delete the addresses of conversations that are theirs alone; in one that others had as well, answers to the
    others still go to its address."""
    return _delete_batch(kind, apps.get_model(kind.model)._default_manager.filter(session_id__in=person.sessions))


def _erase_memories(person: Person, kind: Exported) -> int:
    return memories.delete_batch(person.in_scopes(), most=_ROWS)


def _erase_questions(person: Person, kind: Exported) -> int:
    return gaps.delete_questions(Q(pk__in=_batch(person.rows(kind))))


# Contacts, their identities and the conversations themselves are erased last (`_end`).
ERASERS: Mapping[str, Eraser] = {
    "contacts.ImportedConversation": _delete,
    "silas_sessions.ChronicleEntry": _erase_messages,
    "silas_sessions.VisitorCard": _erase_prompts,
    "silas_sessions.FormAnswers": _delete,
    "silas_sessions.VisitorFile": _erase_files,
    "silas_sessions.TranscriptRequest": _erase_transcripts,
    "silas_sessions.Rating": _clear(comment=""),
    "silas_sessions.SessionLabel": _delete,
    "messengers.ChannelMessage": _delete,
    "messengers.ChannelThread": _erase_addresses,
    "memory.MemoryItem": _erase_memories,
    "memory.MemoryEntity": _delete,
    "knowledge.GapQuestion": _erase_questions,
}
ERASED_AT_THE_END = ("contacts.Contact", "contacts.ContactIdentity", "silas_sessions.ChatSession")
