"""Hand a conversation from the bot to a person and back.

Each change raises `owner_epoch` under the session's row lock. A turn that began in an older epoch finds out in the
transaction that would record its message, and drops it. Called by the console and the REST API, never by a model.
"""

from __future__ import annotations

from uuid import UUID

from apps.approvals.cards.lifecycle import withdraw_session_cards
from apps.approvals.enums import Withdrawal
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.inbox import inbox_rule_triggers, teams
from apps.inbox.enums import DeskStatus, RuleTrigger
from apps.inbox.models import DeskState
from apps.inbox.staff import Staff, member_of, require_staff
from apps.sessions import chronicle, turn_pauses
from apps.sessions.enums import EntryKind, Owner, Sender
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.sessions.queries import session_by_id
from apps.tenants.models import User
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.taint import Taint

MAX_REPLY = 4000


def take_over(session_id: UUID, by: Staff) -> ChatSession:
    """From this commit on the bot says nothing more here. Raises 409 `owned_by_other` when a colleague answers; from a
    program, a member may take over.

    Prompts of a running turn end with it. Work promised to the visitor continues: it is for them, or
    for staff, to cancel it. Lock order: cards, then the conversation.
    """
    require_staff(by)
    turn_pauses.withdraw_pauses(session_id, reason=Withdrawal.HANDOFF, actor=by.actor)
    session = lock_session(session_id)
    member = member_of(by)
    if session.owner == Owner.HUMAN and (member is None or session.owner_user_id is not None):
        _require_mine(session, by)
        return session
    _change_owner(session, Owner.HUMAN, member)
    session.wanted_person_at = None
    session.save(update_fields=["wanted_person_at"])
    # The member who answers has it before them again.
    put_away = DeskState.objects.filter(session=session).exclude(status=DeskStatus.OPEN)
    if put_away.update(status=DeskStatus.OPEN, until=None, changed_at=now()):
        inbox_rule_triggers.enqueue_for_state(session.pk, RuleTrigger.REOPENED, by)
    record(AuditEvent.TAKEN_OVER, actor=by.actor, subject=f"session:{session.pk}")
    return session


def hand_back(session_id: UUID, by: Staff) -> ChatSession:
    """The bot answers again, from the next message on."""
    require_staff(by)
    session = lock_session(session_id)
    if session.owner == Owner.BOT:
        return session
    _require_mine(session, by)
    teams.enqueue_assignment_of(session.owner_user_id)
    _change_owner(session, Owner.BOT, None)
    session.wanted_queue = session.wanted_because = ""
    session.save(update_fields=["wanted_queue", "wanted_because"])
    record(AuditEvent.HANDED_BACK, actor=by.actor, subject=f"session:{session.pk}")
    return session


def withdraw_requests(session_id: UUID, by: Staff) -> int:
    """Withdraw the bot's requests for approval in a conversation that the member or API client has taken over. Returns
    how many there were. Raises 409 `not_yours` for others. Lock order: cards, then the conversation."""
    require_staff(by)
    session, member = session_by_id(session_id), member_of(by)
    if session.owner == Owner.BOT or session.owner_user_id != (member.pk if member else None):
        raise SilasError(ErrorCode.NOT_YOURS, gettext("Take over the conversation first."))
    return withdraw_session_cards(session_id, reason=Withdrawal.HANDOFF, actor=by.actor)


def reply(session_id: UUID, by: Staff, text: str, *, nonce: str = "") -> ChronicleEntry:
    """Say `text` to the visitor, for the member or API client that has taken over. Raises 409 `not_taken_over` for
    others. The same `nonce` twice says it once."""
    require_staff(by)
    text = writable(text)
    session = lock_session(session_id)
    if nonce and (said := _said_before(session, nonce)):
        return said
    require_answering(session, by)
    return append_reply(session, by, text, nonce=nonce)


def append_reply(session: ChatSession, by: Staff, text: str, *, nonce: str = "") -> ChronicleEntry:
    """Write what a person says into a locked conversation in which they may; `text` is `writable`."""
    member = member_of(by)
    entry = chronicle.append(
        session,
        kind=EntryKind.MESSAGE,
        sender=Sender.HUMAN,
        text=text,
        payload={"name": member.display_name} if member else {},
        taint=Taint.AUTH,
        author=member,
        client_id=client_id_of(nonce),
    )
    record(AuditEvent.STAFF_REPLIED, actor=by.actor, subject=f"session:{session.pk}", data={"seq": entry.seq})
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


def require_answering(session: ChatSession, by: Staff) -> None:
    """Raises 409 `not_taken_over` or `owned_by_other` unless this member or program has taken over."""
    if session.owner == Owner.BOT:
        raise SilasError(ErrorCode.NOT_TAKEN_OVER)
    _require_mine(session, by)


def client_id_of(nonce: str) -> str:
    """Under which id a reply or a file is kept: none that a visitor's message could bear by chance."""
    return f"staff:{nonce}"[:64] if nonce else ""


def _said_before(session: ChatSession, nonce: str) -> ChronicleEntry | None:
    found: ChronicleEntry | None = ChronicleEntry.objects.filter(
        session=session, client_id=client_id_of(nonce), sender=Sender.HUMAN
    ).first()
    return found


def _require_mine(session: ChatSession, by: Staff) -> None:
    member = member_of(by)
    if session.owner_user_id != (member.pk if member else None):
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
