"""Receivers of other rooms' events that change a conversation: undeliverable messages, progress of promised work,
and the clean-up of conversations.

A receiver runs inside the transaction that announced the event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from uuid import UUID

from apps.access.rules import PUBLIC
from apps.approvals.cards import metrics
from apps.approvals.enums import CardKind
from apps.approvals.registry import on_pause_end
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus import retention as cleanup
from apps.bus.enums import Kind
from apps.bus.models import QueueMessage
from apps.bus.registry import on_dead_letter
from apps.memory import memories
from apps.memory.enums import SourceKind
from apps.sessions import chronicle, person_wanted, retention, served, turn_pauses, window
from apps.sessions.enums import EntryKind, Owner, Sender
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession
from apps.skills.signals import skill_purged
from apps.work.models import WorkItem
from apps.work.signals import Progress, work_changed, work_escalated
from apps.work.visitor_messages import Change
from kernel.clock import now
from kernel.language import gettext_lazy, in_language
from kernel.taint import Taint

APOLOGY = gettext_lazy("Sorry, I couldn't answer that. I've notified our team, and a colleague will take a look.")
EARLIER_REQUEST = gettext_lazy("An earlier request")
# The decisions of this period say how long one usually takes.
USUAL_PERIOD = timedelta(days=30)
MOVED_ON = gettext_lazy("There's an update on a request that someone else made here. They can ask us about it.")


def _apologise(message: QueueMessage) -> bool:
    """A visitor's message that failed five times gets an honest word, and a person is asked for; not one that was said
    to a person."""
    session = lock_session(UUID(message.scope_id))
    answered = session.owner == Owner.BOT and not (message.payload or {}).get("overheard")
    if answered:
        with in_language(*served.languages_of(session)):
            apology = str(APOLOGY)
        chronicle.append(session, kind=EntryKind.MESSAGE, sender=Sender.BOT, text=apology, taint=Taint.AUTH)
        person_wanted.want_person(session, because=person_wanted.UNANSWERED, actor="system")
    record(AuditEvent.TURN_FAILED, subject=f"session:{session.pk}", data={"reason": message.reason.split()[0][:60]})
    return answered


on_pause_end(turn_pauses.TURN, turn_pauses.enqueue_turn)
on_dead_letter(_apologise, Kind.USER_MESSAGE)
cleanup.register(retention.forget_batch)


@skill_purged.connect
def _let_go(name: str, actor: str) -> None:
    """What its tools answered in conversations is no longer found by anybody who asks memory for it."""
    memories.delete_tagged(window.tags_of(name), source=SourceKind.TOOL_OUTPUT_RAW)


@work_changed.connect
def _tell_progress(item: WorkItem, status: str, progress: Progress) -> None:
    """Progress of work that was promised in a conversation is recorded there, whether the bot or a person answers
    now."""
    if item.session_id is None:
        return
    session = lock_session(item.session_id)
    payload: dict[str, object] = {"work_item_id": str(item.pk), "status": status, "title": item.title}
    payload |= {"reason": item.reason} if item.reason else {}
    payload |= {"next_steps": progress.next_steps} if progress.next_steps else {}
    if progress.changes is not None:
        payload |= _waiting(progress.changes, verified=_is_theirs_now(session, item))
    text = progress.text
    if _somebody_else(session, item):
        # Another person has proved who they are here since: they read that something moved, and nothing of what it was.
        text, payload = MOVED_ON, {**payload, "title": EARLIER_REQUEST, "next_steps": [], "changes": []}
    with in_language(*served.languages_of(session)):
        text, payload["title"] = str(text), str(payload["title"])
    chronicle.append(session, kind=EntryKind.STATUS, sender=Sender.SYSTEM, text=text, payload=payload, taint=Taint.AUTH)


def _waiting(values: Sequence[Change], *, verified: bool) -> dict[str, object]:
    """What a request that waits for approval would change, and how long a decision usually takes, where that is
    known. Only a visitor who is `verified` at this moment reads what their records hold now."""
    told = [change if verified else replace(change, before="") for change in values]
    changes = [{name: value for name, value in asdict(change).items() if value} for change in told]
    usual = metrics.usual_wait_seconds(CardKind.PLAN, now() - USUAL_PERIOD)
    return ({"changes": changes} if changes else {}) | ({} if usual is None else {"usual_seconds": round(usual)})


def _is_theirs_now(session: ChatSession, item: WorkItem) -> bool:
    """Whether the visitor is verified, at this moment, as the customer whose request this is."""
    return bool(item.subject) and session.customer == item.subject and session.level_at(now()) != PUBLIC


def _somebody_else(session: ChatSession, item: WorkItem) -> bool:
    return bool(session.customer and item.subject and session.customer != item.subject)


@work_escalated.connect
def _look_at_it(item: WorkItem, text: str, needs_person: bool) -> None:
    """Work that did not get done asks for a person where it was promised; its author's own words are said first."""
    if item.session_id is None:
        return
    session = lock_session(item.session_id)
    if text and not _somebody_else(session, item):
        chronicle.append(session, kind=EntryKind.MESSAGE, sender=Sender.SYSTEM, text=text, taint=Taint.AUTH)
    if needs_person:
        person_wanted.want_person(session, because=person_wanted.WORK, actor="system")
