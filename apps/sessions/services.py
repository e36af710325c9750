"""How does a conversation begin, and how does a visitor's message enter it?

A message is committed, numbered and owed an answer in one transaction before anybody hears of it; the same
`client_id` sent twice is stored once. Called by the session endpoint and the sockets.
"""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.db import connection

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus import services as bus
from apps.bus.enums import Kind, Queue
from apps.bus.enums import Sender as BusSender
from apps.sessions import chronicle, tokens
from apps.sessions.access import PUBLIC
from apps.sessions.enums import EntryKind, Owner, Sender
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.sessions.schemas import Accepted, Busy, StartedSession
from apps.sessions.signals import session_changed
from apps.tenants.models import Deployment
from kernel.clock import now
from kernel.errors import SilasError
from kernel.taint import Taint
from kernel.tenancy import tenant_scope

RETRY_AFTER_SECONDS = 5
_KNOWN = "SELECT seq FROM silas_sessions_chronicleentry WHERE session_id = %s AND client_id = %s"


def start_session(deployment: Deployment, *, resume_token: str = "", locale: str = "") -> StartedSession:
    """Resume the conversation `resume_token` belongs to in this deployment, or begin a new one. Opens its own scope.

    A wrong or foreign resume token begins a new conversation: it is never an oracle for other people's.
    """
    with tenant_scope(deployment.tenant_id):
        session = _resumable(deployment, resume_token)
        if session is not None:
            return _started(deployment, session, resume_token, resumed=True)
        fresh = tokens.new_resume_token()
        session = _begin(deployment, fresh, locale)
        return _started(deployment, session, fresh, resumed=False)


def _resumable(deployment: Deployment, resume_token: str) -> ChatSession | None:
    if not resume_token:
        return None
    found: ChatSession | None = ChatSession.objects.filter(
        deployment=deployment, resume_hash=tokens.hash_resume_token(resume_token)
    ).first()
    return found


def _begin(deployment: Deployment, resume_token: str, locale: str) -> ChatSession:
    moment = now()
    session: ChatSession = ChatSession.objects.create(
        deployment=deployment,
        resume_hash=tokens.hash_resume_token(resume_token),
        locale=locale[:20],
        created_at=moment,
        last_active_at=moment,
    )
    record(AuditEvent.SESSION_STARTED, actor="visitor", subject=f"session:{session.pk}")
    session_changed(session.pk)
    return session


def _started(deployment: Deployment, session: ChatSession, resume_token: str, *, resumed: bool) -> StartedSession:
    visitor = tokens.Visitor(deployment.public_key, deployment.tenant_id, session.pk)
    return StartedSession(session.pk, tokens.mint(visitor), resume_token, settings.VISITOR_TOKEN_SECONDS, resumed)


def accept_message(session_id: UUID, *, text: str, client_id: str = "", trace_id: str | None = None) -> Accepted | Busy:
    """Store a visitor's message and owe it an answer, unless a person answers here; inside the tenant's scope.

    Returns `Busy`, with nothing stored, when `MAX_PENDING_TURNS` messages of this conversation still wait. Raises
    `SilasError("conversation_full")`: whoever comes back to it is sent all of it, so it cannot grow for ever.
    """
    session = lock_session(session_id)
    known = _seq_of(session, client_id)
    if known is not None:
        return Accepted(known, repeated=True, wakes_bot=False)
    if session.seq >= settings.MAX_CHRONICLE:
        raise SilasError("conversation_full", "This conversation is very long. Please begin a new one.", status=409)
    if bus.pending_count(Queue.PROXY, session.pk) >= settings.MAX_PENDING_TURNS:
        return Busy(RETRY_AFTER_SECONDS)
    entry = chronicle.append(
        session, kind=EntryKind.MESSAGE, sender=Sender.VISITOR, text=text, taint=_taint(session), client_id=client_id
    )
    for_bot = session.owner == Owner.BOT
    if for_bot:
        _owe_answer(session, entry, trace_id)
    data = {"seq": entry.seq, "chars": len(text), "for": session.owner}
    record(AuditEvent.MESSAGE_ACCEPTED, actor="visitor", subject=f"session:{session.pk}", data=data)
    return Accepted(entry.seq, repeated=False, wakes_bot=for_bot)


def _owe_answer(session: ChatSession, entry: ChronicleEntry, trace_id: str | None) -> None:
    bus.enqueue(
        Queue.PROXY,
        kind=Kind.USER_MESSAGE,
        scope_id=session.pk,
        sender=BusSender.USER,
        payload={"seq": entry.seq},
        message_id=f"message:{entry.pk}",
        taint=entry.taint,
        trace_id=trace_id,
    )


def _seq_of(session: ChatSession, client_id: str) -> int | None:
    if not client_id:
        return None
    with connection.cursor() as cursor:
        cursor.execute(_KNOWN, [session.pk, client_id])
        row = cursor.fetchone()
    return int(row[0]) if row else None


def _taint(session: ChatSession) -> Taint:
    """Visitors are `external` until an identity gate has verified them (architecture, mapping of owner taint)."""
    return Taint.AUTH if session.level != PUBLIC and not _expired(session) else Taint.EXTERNAL


def _expired(session: ChatSession) -> bool:
    return session.level_expires_at is not None and session.level_expires_at <= now()
