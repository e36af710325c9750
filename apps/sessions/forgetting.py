"""Delete what memory holds of a visitor, for good, with their files and form answers (`visitors.forgetting`).

The record of the conversation stays and has a retention of its own. Memory starts over after the latest entry, also for
a turn that is running. Called by the console.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import Q

from apps.approvals.enums import Withdrawal
from apps.memory import memories, recall
from apps.memory.enums import ScopeKind
from apps.memory.schemas import Scope, conversation_scope
from apps.sessions import turn_pauses
from apps.sessions.context_state import Focus
from apps.sessions.handoff import ANSWERING_ROLES
from apps.sessions.models import ChatSession
from apps.sessions.visitors import forgetting as beside
from apps.tenants.queries import require_role
from kernel.errors import NotFound


def forget_visitor(session_id: UUID, user: Any) -> int:
    """How many memories were deleted: this conversation's, and for a customer theirs and those of all conversations
    that are theirs. Raises `NotFound`, and 403 for a role that only looks."""
    require_role(user, ANSWERING_ROLES)
    turn_pauses.withdraw_pauses(session_id, reason=Withdrawal.STAFF, actor=f"user:{user.pk}")
    theirs = _conversations(session_id)
    for session in theirs:
        session.focus = Focus.of(session.focus).without_memory(session.seq).as_kept()
        session.save(update_fields=["focus"])
    (asked,) = (session for session in theirs if session.pk == session_id)
    scopes = [scope for session in theirs for scope in _held_of(asked, session)]
    left = [session.pk for session in theirs if session.pk == asked.pk or session.whose == asked.whose]
    beside.forget(left, actor=f"user:{user.pk}", subject=f"session:{session_id}")
    return memories.forget(scopes, actor=f"user:{user.pk}", subject=f"session:{session_id}")


def remembered(session: ChatSession) -> int:
    """How many memories there are of this conversation's visitor, and how many files and forms of theirs in it."""
    return recall.memories_of(scopes_about(session)).count() + beside.left_in([session.pk])


def scopes_about(session: ChatSession) -> list[Scope]:
    """Whose memory a member means by this visitor's: whether the customer's level still stands does not matter."""
    own = [conversation_scope(session.pk)]
    return own + ([Scope(ScopeKind.CUSTOMER, session.whose)] if session.whose else [])


def _held_of(asked: ChatSession, session: ChatSession) -> list[Scope]:
    """Of a conversation that is somebody else's by now, only what was said to the customer of the one that is `asked`
    about."""
    mine = session.pk == asked.pk or session.whose == asked.whose
    return scopes_about(session) if mine else [conversation_scope(session.pk, asked.whose)]


def _conversations(session_id: UUID) -> list[ChatSession]:
    """Locked, in the order of their ids: two members who forget the same customer wait in line."""
    session: ChatSession | None = ChatSession.objects.filter(pk=session_id).first()
    if session is None:
        raise NotFound("conversation")
    rows = ChatSession.objects.select_for_update(of=("self",), no_key=True).order_by("pk")
    theirs = Q(pk=session_id)
    if whose := session.whose:
        theirs |= Q(customer=whose) | Q(last_customer=whose) | Q(pk__in=recall.conversations_with(whose))
    return list(rows.filter(theirs))
