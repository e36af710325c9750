"""Hand a conversation from the bot to a person and back.

Each change raises `owner_epoch` under the session's row lock. A turn that began in an older epoch finds out in the
transaction that would record its message, and drops it. Called by the console, never by a model.
"""

from __future__ import annotations

from uuid import UUID

from apps.approvals.enums import Withdrawal
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.inbox.enums import DeskStatus
from apps.inbox.models import DeskState
from apps.sessions import chronicle, turn_pauses
from apps.sessions.enums import EntryKind, Owner, Sender
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.tenants.enums import Capability
from apps.tenants.models import User
from apps.tenants.queries import require_role
from apps.tenants.rules import roles_with
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.taint import Taint

ANSWERING_ROLES = roles_with(Capability.ANSWER)
MAX_REPLY = 4000


def take_over(session_id: UUID, user: User) -> ChatSession:
    """From this commit on the bot says nothing more here. Raises 409 `owned_by_other` when a colleague answers.

    Prompts of a running turn end with it. Work promised to the visitor continues: it is for them, or
    for staff, to cancel it. Lock order: cards, then the conversation.
    """
    require_role(user, ANSWERING_ROLES)
    turn_pauses.withdraw_pauses(session_id, reason=Withdrawal.HANDOFF, actor=f"user:{user.pk}")
    session = lock_session(session_id)
    if session.owner == Owner.HUMAN:
        _require_mine(session, user)
        return session
    _change_owner(session, Owner.HUMAN, user)
    session.wanted_person_at = None
    session.save(update_fields=["wanted_person_at"])
    # Whoever answers has it before them again.
    put_away = DeskState.objects.filter(session=session).exclude(status=DeskStatus.OPEN)
    put_away.update(status=DeskStatus.OPEN, until=None, changed_at=now())
    record(AuditEvent.TAKEN_OVER, actor=f"user:{user.pk}", subject=f"session:{session.pk}")
    return session


def hand_back(session_id: UUID, user: User) -> ChatSession:
    """The bot answers again, from the next message on."""
    require_role(user, ANSWERING_ROLES)
    session = lock_session(session_id)
    if session.owner == Owner.BOT:
        return session
    _require_mine(session, user)
    _change_owner(session, Owner.BOT, None)
    session.wanted_queue = session.wanted_because = ""
    session.save(update_fields=["wanted_queue", "wanted_because"])
    record(AuditEvent.HANDED_BACK, actor=f"user:{user.pk}", subject=f"session:{session.pk}")
    return session


def reply(session_id: UUID, user: User, text: str, *, nonce: str = "") -> ChronicleEntry:
    """Say `text` to the visitor as a person who has taken over. Raises 409 `not_taken_over` otherwise. The same `nonce`
    twice says it once."""
    require_role(user, ANSWERING_ROLES)
    text = writable(text)
    session = lock_session(session_id)
    if nonce and (said := _said_before(session, nonce)):
        return said
    if session.owner == Owner.BOT:
        raise SilasError(ErrorCode.NOT_TAKEN_OVER)
    _require_mine(session, user)
    entry = chronicle.append(
        session,
        kind=EntryKind.MESSAGE,
        sender=Sender.HUMAN,
        text=text,
        payload={"name": user.display_name},
        taint=Taint.AUTH,
        author=user,
        client_id=_client_id(nonce),
    )
    record(AuditEvent.STAFF_REPLIED, actor=f"user:{user.pk}", subject=f"session:{session.pk}", data={"seq": entry.seq})
    return entry


def writable(text: str) -> str:
    """What a person wrote, without the space around it. Raises 400 `invalid_text` where nothing could be shown."""
    text = text.strip()
    if not text or len(text) > MAX_REPLY or "\0" in text:
        raise SilasError(
            ErrorCode.INVALID_TEXT,
            gettext("A reply must have 1 to {max_reply} visible characters.").format(max_reply=MAX_REPLY),
        )
    return text


def _client_id(nonce: str) -> str:
    """Under which id a reply is kept: none that a visitor's message could bear by chance."""
    return f"staff:{nonce}"[:64] if nonce else ""


def _said_before(session: ChatSession, nonce: str) -> ChronicleEntry | None:
    found: ChronicleEntry | None = ChronicleEntry.objects.filter(
        session=session, client_id=_client_id(nonce), sender=Sender.HUMAN
    ).first()
    return found


def _require_mine(session: ChatSession, user: User) -> None:
    if session.owner_user_id != user.pk:
        problem = gettext("A colleague is now answering in this conversation.")
        if session.owner_user:
            problem = gettext("Your colleague {name} is now answering in this conversation.").format(
                name=session.owner_user.display_name
            )
        raise SilasError(ErrorCode.OWNED_BY_OTHER, problem)


def _change_owner(session: ChatSession, owner: Owner, user: User | None) -> None:
    session.owner, session.owner_user = owner, user
    session.owner_epoch += 1
    session.save(update_fields=["owner", "owner_user", "owner_epoch"])
    payload = {"owner": owner.value, "epoch": session.owner_epoch} | ({"name": user.display_name} if user else {})
    chronicle.append(session, kind=EntryKind.OWNER, sender=Sender.SYSTEM, payload=payload, taint=Taint.AUTH)
