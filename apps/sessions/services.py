"""Start a conversation, and accept a visitor's message.

A message is committed, numbered and queued for an answer in one transaction before it is published; the same
`client_id` sent twice is stored once. Called by the session endpoint and the sockets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from apps.access import tokens
from apps.access.message_signatures import REPLAYED, judge_signature
from apps.access.rules import PUBLIC
from apps.access.schemas import Signed
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus import services as bus
from apps.bus.enums import Kind, Queue
from apps.bus.enums import Sender as BusSender
from apps.bus.queries import backlog
from apps.sessions import chronicle, registry, served
from apps.sessions.enums import EntryKind, Owner, Sender
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.sessions.ratelimit.limits import TOO_MANY_HERE, Bounds
from apps.sessions.schemas import Accepted, Busy, StartedSession
from apps.sessions.signals import session_changed, visitor_described
from apps.tenants.models import Deployment
from kernel import tracing
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.taint import Taint
from kernel.tenancy import built_once, tenant_scope
from kernel.tracing import SpanName

RETRY_AFTER_SECONDS = 5
MAX_ATTRIBUTES = 20


def start_session(
    deployment: Deployment,
    *,
    resume_token: str = "",
    locale: str = "",
    customer: str = "",
    is_test: bool = False,
    started_by: str = "",
    session_id: UUID | None = None,
) -> StartedSession:
    """Resume the conversation `resume_token` belongs to in this deployment, or begin a new one. Opens its own scope.

    A wrong or foreign resume token begins a new conversation: it is never an oracle for other people's. So does one of
    a conversation that was another customer's than the `customer` whom the site now names. `is_test`: the house tries
    its own bot. `started_by`: the program or member who starts it, who may name its `session_id`, which is then resumed
    (`tokens.resume_token_of`) or begun. Raises 409 `conversation_of_other` where that is another customer's.
    """
    with tenant_scope(deployment.tenant_id):
        session = resumable(deployment, resume_token)
        # Another customer on the same browser must not read what was said to the one before.
        if session is not None and (not customer or session.whose in ("", customer)):
            return _started(deployment, session, resume_token, resumed=True)
        if session is not None and session.pk == session_id:
            raise SilasError(ErrorCode.CONVERSATION_OF_OTHER)
        fresh = tokens.resume_token_of(session_id) if session_id else tokens.new_resume_token()
        session = _begin(deployment, fresh, locale, is_test=is_test, started_by=started_by, id=session_id or uuid4())
        return _started(deployment, session, fresh, resumed=False)


def describe(session_id: UUID, attributes: Mapping[str, str]) -> None:
    """Keep what the page says of its visitor, over what it said before; the newest `MAX_ATTRIBUTES` stay. Inside the
    tenant's scope. Staff may read it; it proves nothing."""
    session = lock_session(session_id)
    known = {name: value for name, value in session.attributes.items() if name not in attributes}
    said = dict([*known.items(), *attributes.items()][-MAX_ATTRIBUTES:])
    if said == session.attributes:
        return
    session.attributes = said
    session.save(update_fields=["attributes"])
    record(AuditEvent.VISITOR_DESCRIBED, actor="visitor", subject=f"session:{session_id}", data={"names": len(said)})
    visitor_described(session)


def resumable(deployment: Deployment, resume_token: str) -> ChatSession | None:
    """The conversation that this resume token continues; None for a wrong one. Inside the tenant's scope."""
    if not resume_token:
        return None
    found: ChatSession | None = ChatSession.objects.filter(
        deployment=deployment, resume_hash=tokens.hash_resume_token(resume_token)
    ).first()
    return found


def _begin(deployment: Deployment, resume_token: str, locale: str, **fields: object) -> ChatSession:
    moment = now()
    session = ChatSession(
        deployment=deployment,
        resume_hash=tokens.hash_resume_token(resume_token),
        locale=locale[:20],
        created_at=moment,
        last_active_at=moment,
        **fields,
    )
    session.release_id = served.settings_of(session).release
    session.save(force_insert=True)
    record(AuditEvent.SESSION_STARTED, actor="visitor", subject=f"session:{session.pk}")
    session_changed(session.pk)
    return session


def _started(deployment: Deployment, session: ChatSession, resume_token: str, *, resumed: bool) -> StartedSession:
    visitor = tokens.Visitor(deployment.public_key, deployment.tenant_id, session.pk)
    return StartedSession(session.pk, tokens.mint(visitor), resume_token, settings.VISITOR_TOKEN_SECONDS, resumed)


def accept_message(
    session_id: UUID,
    *,
    text: str,
    client_id: str = "",
    trace_id: str | None = None,
    bounds: Bounds | None = None,
    signed: Taint | None = None,
    proactive_message: UUID | None = None,
) -> Accepted | Busy:
    """Store a visitor's message and enqueue its turn; where a person answers, a look of the gates alone (ADR 43).
    Inside the tenant's scope.

    Returns `Busy`, with nothing stored, when as many messages of this conversation or of the tenant wait as its
    `bounds` allow (the installation's without any). Raises `SilasError("conversation_full")`: a returning visitor
    is sent all of it, so its length is limited. `signed`: what a signature on it came to (`signing`).
    `proactive_message`: what the visitor answers; it is recorded before their message, once in a conversation.
    """
    bounds = bounds or Bounds(**settings.VISITOR_LIMITS)
    waiting = backlog(Queue.PROXY, session_id, most=bounds.tenant_pending_turns)
    # Under the conversation's lock: of two copies of one message the second finds the first.
    earlier = _seqs_of.columns(session_id, client_id)
    session = lock_session(session_id, waiting, *([earlier] if client_id else []))
    # Before the limits: a message that was stored is acknowledged, however many wait by now.
    for (seq,) in earlier.rows or ():
        return Accepted(seq, repeated=True)
    if session.seq >= settings.MAX_CHRONICLE:
        raise SilasError(ErrorCode.CONVERSATION_FULL)
    is_bots = session.owner == Owner.BOT
    if is_bots and (said := _too_many_wait(waiting.value, bounds)):
        return Busy(RETRY_AFTER_SECONDS, said)
    if proactive_message and (opening := registry.opening_of(session, proactive_message)):
        chronicle.append(
            session,
            kind=EntryKind.MESSAGE,
            sender=Sender.BOT,
            text=opening,
            payload={"proactive_message": str(proactive_message)},
            taint=Taint.AUTH,
        )
    # A level that has ended by now proves no identity.
    taint = signed or (Taint.EXTERNAL if session.level_at(now()) == PUBLIC else Taint.AUTH)
    with tracing.span(SpanName.MESSAGE, tenant=session.tenant_id, conversation=session_id):
        entry = chronicle.append(
            session, kind=EntryKind.MESSAGE, sender=Sender.VISITOR, text=text, taint=taint, client_id=client_id
        )
        bus.send_message(
            Queue.PROXY,
            kind=Kind.USER_MESSAGE,
            scope_id=session_id,
            sender=BusSender.USER,
            payload={"seq": entry.seq, "overheard": not is_bots},
            trace_id=trace_id,
            # One turn for one entry, however often it is sent.
            message_id=f"message:{entry.pk}",
            taint=taint,
        )
    data = {"chars": len(text)}
    record(AuditEvent.MESSAGE_ACCEPTED, actor="visitor", subject=f"session:{session_id}", data=data)
    return Accepted(entry.seq, repeated=False)


@built_once
def _seqs_of(session_id: UUID, client_id: str) -> QuerySet[ChronicleEntry, Any]:
    return ChronicleEntry.objects.filter(session_id=session_id, client_id=client_id).order_by("seq").values_list("seq")


def _too_many_wait(waiting: tuple[int, int], bounds: Bounds) -> str:
    """What the visitor is told when no more messages may wait for an answer; "" while there is room."""
    in_conversation, in_tenant = waiting
    if in_conversation >= bounds.pending_turns:
        return gettext("Please wait for an answer to your earlier messages first.")
    if in_tenant >= bounds.tenant_pending_turns:
        return str(TOO_MANY_HERE)
    return ""


def accept_signed(
    session_id: UUID,
    *,
    text: str,
    signed: Signed,
    deployment: str,
    client_id: str = "",
    bounds: Bounds | None = None,
    proactive_message: UUID | None = None,
) -> Accepted | Busy:
    """`accept_message` for a message that bears a signature; inside a scope of the tenant, in which the nonce is used
    up with the message or not at all: one sent again, because its answer was lost, is the same message."""
    with transaction.atomic():
        taint, problem = judge_signature(text, signed, deployment)
        accepted = accept_message(
            session_id,
            text=text,
            client_id=client_id,
            bounds=bounds,
            signed=taint,
            proactive_message=proactive_message,
        )
        stored = isinstance(accepted, Accepted) and not accepted.repeated
        if stored and problem:
            event = AuditEvent.MESSAGE_REPLAYED if problem in REPLAYED else AuditEvent.SIGNATURE_REFUSED
            record(event, subject=f"session:{session_id}", data={"reason": problem})
        if not stored:
            # A message that is not stored must not use up its nonce, or sending it again would count as a replay.
            transaction.set_rollback(True)
    return accepted
