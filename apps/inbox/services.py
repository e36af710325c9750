"""Change a conversation's state for staff: snooze, resolve, reopen, assign, label, note.

Everyone who may answer may do all of it in any conversation of the tenant. Each call locks the conversation, so that a
visitor who writes at the same time comes before or after. Called by the console, never by a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.approvals.enums import Withdrawal
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.inbox import rules
from apps.inbox.enums import DeskStatus
from apps.inbox.handoff import ANSWERING_ROLES, writable
from apps.inbox.models import DeskState, Label, Note, SessionLabel
from apps.sessions import turn_pauses
from apps.sessions.enums import Owner
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession
from apps.sessions.signals import session_changed
from apps.tenants.models import User
from apps.tenants.queries import require_role, role_of
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext


def resolve(session_id: UUID, user: User) -> bool:
    """Resolve the conversation until the visitor writes again. It no longer waits for a person, and what
    gates hold back for approval is withdrawn; who answers stays the same. False if nothing changed, as with all of
    these."""
    require_role(user, ANSWERING_ROLES)
    turn_pauses.withdraw_pauses(session_id, reason=Withdrawal.STAFF, actor=f"user:{user.pk}")
    session, state = _begin(session_id, user)
    if state.status == DeskStatus.RESOLVED and session.wanted_person_at is None:
        return False
    if session.owner == Owner.BOT and session.wanted_person_at is not None:
        session.wanted_person_at, session.wanted_queue, session.wanted_because = None, "", ""
        session.save(update_fields=["wanted_person_at", "wanted_queue", "wanted_because"])
    return _move(state, DeskStatus.RESOLVED, None, AuditEvent.CONVERSATION_RESOLVED, user)


def reopen(session_id: UUID, user: User) -> bool:
    """Open again what was snoozed or resolved."""
    _, state = _begin(session_id, user)
    if state.status == DeskStatus.OPEN:
        return False
    return _move(state, DeskStatus.OPEN, None, AuditEvent.CONVERSATION_REOPENED, user)


def snooze(session_id: UUID, user: User, *, until: datetime | None) -> bool:
    """Out of sight until then, or until the visitor answers, whichever is first; None for the latter alone. Raises 400
    `bad_time` for the past and for years ahead."""
    session, state = _begin(session_id, user)
    if until is not None and not rules.may_rest_until(until, moment=now()):
        raise SilasError(ErrorCode.BAD_TIME, gettext("Choose a time in the future, within a year."))
    wanted = session.wanted_person_at is not None and session.wanted_person_at > state.changed_at
    if (state.status, state.until) == (DeskStatus.SNOOZED, until) and not wanted:
        return False
    return _move(state, DeskStatus.SNOOZED, until, AuditEvent.CONVERSATION_SNOOZED, user)


def assign(session_id: UUID, user: User, *, to: User | None) -> bool:
    """Assign a conversation; None unassigns it. An assignment locks nothing: every member who may answer can still take
    over. Raises 409 `assignee_unfit` for a member who may not answer."""
    session, state = _begin(session_id, user)
    if to is not None and role_of(to) not in ANSWERING_ROLES:
        raise SilasError(ErrorCode.ASSIGNEE_UNFIT, gettext("This teammate can't answer this conversation."))
    if state.assignee_id == (to.pk if to else None):
        return False
    state.assignee = to
    state.save()
    _told(AuditEvent.CONVERSATION_ASSIGNED, session.pk, user, to=str(to.pk) if to else "")
    return True


def mark(session_id: UUID, user: User, *, label_id: UUID, on: bool) -> bool:
    """Put a label on a conversation, or take it off."""
    require_role(user, ANSWERING_ROLES)
    session = lock_session(session_id)
    # Nobody deletes it meanwhile.
    label = Label.objects.select_for_update(of=("self",), no_key=True).filter(pk=label_id).first()
    if label is None:
        raise NotFound()
    if on:
        _, changed = SessionLabel.objects.get_or_create(session=session, label=label)
    else:
        changed = bool(SessionLabel.objects.filter(session=session, label=label).delete()[0])
    if changed:
        _told(AuditEvent.CONVERSATION_LABELLED, session.pk, user, label=str(label.pk), on=on)
    return bool(changed)


def note(session_id: UUID, user: User, text: str, *, nonce: str = "") -> Note:
    """Tell colleagues something; no visitor and no model ever reads it. The same `nonce` twice writes once."""
    require_role(user, ANSWERING_ROLES)
    text = writable(text)
    session = lock_session(session_id)
    if nonce and (before := Note.objects.filter(session=session, nonce=nonce[:64]).first()):
        return before
    written: Note = Note.objects.create(
        session=session, author=user, text=text, after=session.seq, nonce=nonce[:64], created_at=now()
    )
    _told(AuditEvent.NOTE_WRITTEN, session.pk, user, note=str(written.pk))
    return written


def _begin(session_id: UUID, user: User) -> tuple[ChatSession, DeskState]:
    """The locked conversation and what staff have said about it, which is nothing at first."""
    require_role(user, ANSWERING_ROLES)
    session = lock_session(session_id)
    state = DeskState.objects.filter(session=session).first() or DeskState(session=session, changed_at=now())
    return session, state


def _move(state: DeskState, to: DeskStatus, until: datetime | None, event: AuditEvent, user: User) -> bool:
    state.status, state.until, state.changed_at = to, until, now()
    state.save()
    _told(event, state.session_id, user, **({"until": until.isoformat()} if until else {}))
    return True


def _told(event: AuditEvent, session_id: UUID, user: User, **data: object) -> None:
    session_changed(session_id)
    kept: Mapping[str, Any] = data
    record(event, actor=f"user:{user.pk}", subject=f"session:{session_id}", data=dict(kept))
