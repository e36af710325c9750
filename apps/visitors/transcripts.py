"""Transcripts by e-mail: requested in the widget, sent after the commit by a worker that holds the signing key.

The e-mail contains what the visitor saw and no more, as plain text and as HTML without links. The address is deleted
with the last attempt. Requests are limited per conversation, per origin and per address, because a stranger's mailbox
may be behind every address that is typed.
"""

from __future__ import annotations

import asyncio
import logging
import smtplib
from uuid import UUID

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus.deliveries import Delivery
from apps.bus.enums import Kind, SetAside
from apps.bus.models import QueueMessage
from apps.bus.services import enqueue
from apps.bus.signals import set_aside
from apps.sessions import rules
from apps.sessions.enums import EntryKind, Sender
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.sessions.queries import session_by_id
from apps.sessions.served import languages_of
from apps.tenants.addresses import is_email
from apps.visitors import ratelimit
from apps.visitors.enums import TranscriptState
from apps.visitors.models import TranscriptRequest
from apps.visitors.offers import offers_of
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext, in_language
from kernel.ratelimit.fixed_window import Limit
from kernel.tenancy import in_scope

MOST_ATTEMPTS = 6
MOST_LINES = 1000
_SEEN = (EntryKind.MESSAGE, EntryKind.FILE)
_log = logging.getLogger(__name__)


def check_pace(session_id: UUID, address: str, *, ip: str) -> None:
    """Count one letter. Outside of a transaction; raises as `ratelimit.count_under`."""
    there = Limit(f"letter:to:{sha256_hex(address.lower())[:32]}", 3, ratelimit.HOUR)
    ratelimit.count_under([there])
    ratelimit.count("letter", session_id, most=3, address=ip, most_there=10, seconds=ratelimit.HOUR)


def ask(session_id: UUID, *, address: str, client_id: str) -> TranscriptRequest:
    """Enqueue it; the same `client_id` once more is the same letter. Raises `NotFound` where none is offered, 400
    `invalid_email`, 409 `nothing_said`."""
    _check_address(address)
    session = lock_session(session_id)
    if before := TranscriptRequest.objects.filter(session_id=session_id, client_id=client_id).first():
        row: TranscriptRequest = before
        return row
    if not settings.EMAIL_HOST or not offers_of(session.deployment_id).transcripts:
        raise NotFound()
    if session.seq == 0:
        raise SilasError(ErrorCode.NOTHING_SAID)
    row = TranscriptRequest(session_id=session_id, client_id=client_id, address=address, until_seq=session.seq)
    row.asked_at = now()
    row.save(force_insert=True)
    enqueue(Kind.TRANSCRIPT_MAIL, scope_id=row.pk)
    record(AuditEvent.TRANSCRIPT_ASKED, actor="visitor", subject=f"session:{session_id}", data={"letter": str(row.pk)})
    return row


def _check_address(address: str) -> None:
    if not is_email(address):
        raise SilasError(ErrorCode.INVALID_EMAIL, gettext("Please enter a valid email address."))


def asked(session_id: UUID, request_id: UUID) -> TranscriptRequest:
    """Raises `NotFound`, also for another conversation's."""
    row: TranscriptRequest | None = TranscriptRequest.objects.filter(pk=request_id, session_id=session_id).first()
    if row is None:
        raise NotFound()
    return row


async def send(delivery: Delivery) -> None:
    """Carry out one `TRANSCRIPT_MAIL`. The letter's scope on the bus is its own, so no letter waits for another."""
    request_id = UUID(delivery.message.subject)
    letter = await in_scope(delivery.tenant_id, _letter, request_id)
    if letter is not None:
        problem = await asyncio.to_thread(_sent, letter)
        await in_scope(delivery.tenant_id, _settle, delivery, request_id, problem)


def give_up(message: QueueMessage) -> bool:
    """The letter's deliveries failed for good, and the owners are told so."""
    row = _owed(UUID(message.subject))
    if row is None:
        return False
    _end(row, TranscriptState.GIVEN_UP)
    set_aside(SetAside.TRANSCRIPT, "system")
    return True


def _owed(request_id: UUID) -> TranscriptRequest | None:
    rows = TranscriptRequest.objects.select_for_update(no_key=True)
    row: TranscriptRequest | None = rows.filter(pk=request_id, state=TranscriptState.OWED).first()
    return row


def _letter(request_id: UUID) -> EmailMultiAlternatives | None:
    row = _owed(request_id)
    if row is None:
        return None
    session = session_by_id(row.session_id)
    entries = ChronicleEntry.objects.filter(session=session, kind__in=_SEEN, seq__lte=row.until_seq)
    title = " ".join(session.deployment.title.split())
    with in_language(*languages_of(session)):
        lines = [_line(session, entry) for entry in entries.order_by("-seq")[:MOST_LINES]][::-1]
        about = gettext(
            "This conversation was sent to you on request in the chat of {title}. If you didn't request it, you can"
            " ignore this email."
        )
        shown = {"lines": lines, "title": title, "about": about.format(title=title)}
        letter = EmailMultiAlternatives(
            gettext("Your conversation with {title}").format(title=title),
            render_to_string("visitors/transcript.txt", shown),
            None,
            [row.address],
            headers={"Auto-Submitted": "auto-generated", "X-Auto-Response-Suppress": "All"},
        )
        letter.attach_alternative(render_to_string("visitors/transcript.html", shown), "text/html")
    return letter


def _line(session: ChatSession, entry: ChronicleEntry) -> dict[str, object]:
    by = {Sender.VISITOR: gettext("You"), Sender.HUMAN: rules.author_name(entry) or gettext("A colleague")}
    who = by.get(Sender(entry.sender), session.deployment.title)
    text = entry.text if entry.kind == EntryKind.MESSAGE else gettext("File: {name}").format(name=entry.text)
    return {"who": who, "text": text, "at": entry.created_at}


def _sent(letter: EmailMultiAlternatives) -> str:
    """Empty, or why it could not be sent."""
    if not settings.EMAIL_HOST:
        return "no_mail_server"
    try:
        letter.send()
    except smtplib.SMTPRecipientsRefused:
        return "refused"
    except Exception as error:  # noqa: BLE001 (one letter's fault must not keep the others)
        _log.warning("transcript_not_sent error=%s", type(error).__name__)
        return "failed"
    return ""


def _settle(delivery: Delivery, request_id: UUID, problem: str) -> None:
    """Sent, given up, or again later. A letter whose visitor was forgotten meanwhile is not sent."""
    row = _owed(request_id)
    if row is None:
        delivery.finish()
        return
    row.attempts += 1
    if problem == "failed" and row.attempts < MOST_ATTEMPTS:
        row.save(update_fields=["attempts"])
        delivery.defer(15 * 2**row.attempts, problem)
        return
    _end(row, TranscriptState.GIVEN_UP if problem else TranscriptState.SENT)
    if problem == "failed":
        set_aside(SetAside.TRANSCRIPT, "system")
    delivery.finish()


def _end(row: TranscriptRequest, state: TranscriptState) -> None:
    row.state, row.address, row.settled_at = state, "", now()
    row.save(update_fields=["state", "address", "settled_at", "attempts"])
    data = {"letter": str(row.pk), "state": state.value, "attempts": row.attempts}
    record(AuditEvent.TRANSCRIPT_SETTLED, subject=f"session:{row.session_id}", data=data)
