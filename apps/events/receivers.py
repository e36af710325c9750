"""One line for each thing that programs are told of. Receivers run in the transaction in which it happens."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from apps.approvals.enums import CardStatus
from apps.approvals.models import Card
from apps.approvals.signals import card_changed
from apps.autonomy.enums import TaskEvent
from apps.autonomy.models import AutonomousSession
from apps.autonomy.services.outbox import register_content
from apps.autonomy.services.webhooks import register_event_types
from apps.autonomy.signals import result_delivered, task_event
from apps.bus import retention
from apps.events.catalogue import CATALOGUE
from apps.events.services import delete_old_events, emit
from apps.events.webhooks import content_of
from apps.inbox.models import SlaClock
from apps.inbox.signals import sla_missed
from apps.knowledge.signals import document_stored
from apps.sessions.chronicle import SAID
from apps.sessions.enums import EntryKind, Owner
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.sessions.signals import entries_appended, person_wanted, session_changed
from apps.visitors.models import Rating
from apps.visitors.signals import conversation_rated
from apps.work.models import WorkItem
from apps.work.signals import Progress, work_changed

_CARD_EVENTS = {CardStatus.OPEN: "card.created", CardStatus.ASSIGNED: "card.assigned"}

retention.register(delete_old_events)
register_event_types({name: each.scope for name, each in CATALOGUE.items()})
register_content(content_of)


@session_changed.connect
def _session_changed(session_id: UUID) -> None:
    emit("conversation.updated", session_id=session_id)


@entries_appended.connect
def _entries_appended(session: ChatSession, entries: Sequence[ChronicleEntry]) -> None:
    if entries[0].seq == 1:
        emit("conversation.created", session_id=session.pk)
    for entry in entries:
        if entry.kind in SAID and entry.text:
            emit("message.created", session_id=session.pk, seq=entry.seq, sender=str(entry.sender))
        elif entry.kind == EntryKind.OWNER:
            started = entry.payload.get("owner") == Owner.HUMAN
            emit("handover.started" if started else "handover.ended", session_id=session.pk)


@person_wanted.connect
def _person_wanted(session: ChatSession) -> None:
    emit("handover.requested", session_id=session.pk, queue=session.wanted_queue)


@conversation_rated.connect
def _conversation_rated(rating: Rating) -> None:
    emit("rating.created", session_id=rating.session_id, score=rating.score, scale=str(rating.scale))


@sla_missed.connect
def _sla_missed(clock: SlaClock, responsible: Collection[UUID]) -> None:
    due = clock.due_at.isoformat() if clock.due_at else ""
    policy = str(clock.policy_id) if clock.policy_id else ""  # deleted meanwhile
    emit("sla.missed", session_id=clock.session_id, target=clock.target, policy=policy, due_at=due)


@card_changed.connect
def _card_changed(card: Card) -> None:
    emit(
        _CARD_EVENTS.get(CardStatus(card.status), "card.settled"),
        session_id=card.session_id,
        deployment_id=card.deployment_id,
        card=str(card.pk),
        kind=str(card.kind),
        state=str(card.status),
        risk=str(card.risk),
    )


@work_changed.connect
def _work_changed(item: WorkItem, status: str, progress: Progress) -> None:
    emit(
        "work.updated",
        session_id=item.session_id,
        deployment_id=item.deployment_id,
        work_item=str(item.pk),
        type=str(item.type),
        status=str(item.status),
    )


@document_stored.connect
def _document_stored(document_id: UUID, collection_id: UUID, actor: str) -> None:
    emit("knowledge.document_stored", document=str(document_id), collection=str(collection_id))


@task_event.connect
def _task_event(session: AutonomousSession, event: TaskEvent, data: Mapping[str, object]) -> None:
    emit(event.value.replace(":", "."), run=str(session.pk), task=str(session.task_id), counts=dict(data))


@result_delivered.connect
def _result_delivered(session: AutonomousSession, counts: Mapping[str, int]) -> None:
    emit("task.result", run=str(session.pk), task=str(session.task_id), counts=dict(counts))
