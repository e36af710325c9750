"""Who answers in this conversation, the bot or a person?

Each change raises `owner_epoch` under the session's row lock; a turn that began in an older epoch finds that out in the
very transaction that would record its message, and drops it. Called by the console; never by a model.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.sessions import chronicle
from apps.sessions.enums import EntryKind, Owner, Sender
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.tenants.enums import Role
from apps.tenants.queries import require_role
from kernel.clock import now
from kernel.errors import SilasError
from kernel.taint import Taint

ANSWERING_ROLES = (Role.OWNER, Role.APPROVER, Role.AGENT)
MAX_REPLY = 4000


def take_over(session_id: UUID, user: Any) -> ChatSession:
    """From this commit on the bot says nothing more here. Raises 409 `owned_by_other` when a colleague answers."""
    require_role(user, ANSWERING_ROLES)
    session = lock_session(session_id)
    if session.owner == Owner.HUMAN:
        _require_mine(session, user)
        return session
    _change_owner(session, Owner.HUMAN, user)
    session.wanted_person_at = None
    session.save(update_fields=["wanted_person_at"])
    record(AuditEvent.TAKEN_OVER, actor=f"user:{user.pk}", subject=f"session:{session.pk}")
    return session


def hand_back(session_id: UUID, user: Any) -> ChatSession:
    """The bot answers again, from the next message on."""
    require_role(user, ANSWERING_ROLES)
    session = lock_session(session_id)
    if session.owner == Owner.BOT:
        return session
    _require_mine(session, user)
    _change_owner(session, Owner.BOT, None)
    record(AuditEvent.HANDED_BACK, actor=f"user:{user.pk}", subject=f"session:{session.pk}")
    return session


def reply(session_id: UUID, user: Any, text: str) -> ChronicleEntry:
    """Say `text` to the visitor as a person who has taken over. Raises 409 `not_taken_over` otherwise."""
    require_role(user, ANSWERING_ROLES)
    text = text.strip()
    if not text or len(text) > MAX_REPLY or "\0" in text:
        raise SilasError("invalid_text", f"A reply has 1 to {MAX_REPLY} characters that can be shown.")
    session = lock_session(session_id)
    if session.owner == Owner.BOT:
        raise SilasError("not_taken_over", "Take the conversation over before you reply.", status=409)
    _require_mine(session, user)
    entry = chronicle.append(
        session,
        kind=EntryKind.MESSAGE,
        sender=Sender.HUMAN,
        text=text,
        payload={"name": user.display_name},
        taint=Taint.AUTH,
        author=user,
    )
    record(AuditEvent.STAFF_REPLIED, actor=f"user:{user.pk}", subject=f"session:{session.pk}", data={"seq": entry.seq})
    return entry


def want_person(session: ChatSession) -> None:
    """Note on the locked `session` that the visitor waits for a person; staff see it in their list."""
    if session.wanted_person_at is None and session.owner == Owner.BOT:
        session.wanted_person_at = now()
        session.save(update_fields=["wanted_person_at"])
        record(AuditEvent.PERSON_WANTED, actor="visitor", subject=f"session:{session.pk}")


def _require_mine(session: ChatSession, user: Any) -> None:
    if session.owner_user_id != user.pk:
        raise SilasError("owned_by_other", "A colleague is answering in this conversation.", status=409)


def _change_owner(session: ChatSession, owner: Owner, user: Any) -> None:
    session.owner, session.owner_user = owner, user
    session.owner_epoch += 1
    session.save(update_fields=["owner", "owner_user", "owner_epoch"])
    payload = {"owner": owner.value, "epoch": session.owner_epoch} | ({"name": user.display_name} if user else {})
    chronicle.append(session, kind=EntryKind.OWNER, sender=Sender.SYSTEM, payload=payload, taint=Taint.AUTH)
