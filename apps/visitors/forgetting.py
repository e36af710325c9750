"""Delete what memory holds of a visitor, for good, with what they left beside messages: files, form answers, the
comment of their rating, addresses of transcripts not yet sent.

The record of the conversation stays and has a retention of its own, and so do consents and the rating itself. Memory
starts over after the latest entry, also for a turn that is running. Called by the console.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from apps.approvals.enums import Withdrawal
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.knowledge import gaps
from apps.memory import memories, recall
from apps.memory.schemas import Scope, conversation_scope
from apps.sessions import turn_pauses
from apps.sessions.context_state import Focus
from apps.sessions.models import ChatSession
from apps.sessions.queries import scopes_about
from apps.tenants.enums import Capability
from apps.tenants.models import User
from apps.tenants.queries import require_role
from apps.tenants.rules import roles_with
from apps.visitors import file_storage
from apps.visitors.enums import TranscriptState
from apps.visitors.models import FormAnswers, Rating, TranscriptRequest, VisitorCard, VisitorFile
from kernel.errors import NotFound

ANSWERING_ROLES = roles_with(Capability.ANSWER)


def forget_visitor(session_id: UUID, user: User) -> int:
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
    delete_leftovers(left, actor=f"user:{user.pk}", subject=f"session:{session_id}")
    return memories.forget(scopes, actor=f"user:{user.pk}", subject=f"session:{session_id}")


def remembered(session: ChatSession) -> int:
    """How many memories there are of this conversation's visitor, and how many files and forms of theirs in it."""
    return recall.memories_of(scopes_about(session)).count() + _left_in([session.pk])


def _held_of(asked: ChatSession, session: ChatSession) -> list[Scope]:
    """Of a conversation that now belongs to another customer, only what was said to the customer of the one that is
    `asked` about."""
    mine = session.pk == asked.pk or session.whose == asked.whose
    return scopes_about(session) if mine else [conversation_scope(session.pk, asked.whose)]


def _conversations(session_id: UUID) -> list[ChatSession]:
    """Locked, in the order of their ids: two members who forget the same customer wait in line."""
    session: ChatSession | None = ChatSession.objects.filter(pk=session_id).first()
    if session is None:
        raise NotFound()
    rows = ChatSession.objects.select_for_update(of=("self",), no_key=True).order_by("pk")
    theirs = Q(pk=session_id)
    if whose := session.whose:
        theirs |= Q(customer=whose) | Q(last_customer=whose) | Q(pk__in=recall.conversations_with(whose))
    return list(rows.filter(theirs))


def _left_in(session_ids: Collection[UUID]) -> int:
    """How many files and forms there are in these conversations."""
    files = VisitorFile.objects.filter(session_id__in=session_ids).count()
    forms = FormAnswers.objects.filter(session_id__in=session_ids).count() + _filled_in(session_ids).count()
    return int(files + forms)


def delete_leftovers(session_ids: Collection[UUID], *, actor: str, subject: str) -> None:
    """Delete files, form answers, the comment of the rating, addresses of transcripts not yet sent and questions kept
    as knowledge gaps. Consents and the rating itself stay. Inside the caller's scope; the bytes are deleted after its
    commit."""
    files = list(VisitorFile.objects.filter(session_id__in=session_ids))
    VisitorFile.objects.filter(pk__in=[each.pk for each in files]).delete()
    file_storage.delete_on_commit(file.stored_name for file in files)
    forms, _ = FormAnswers.objects.filter(session_id__in=session_ids).delete()
    forms += _filled_in(session_ids).update(answers={})
    comments = Rating.objects.filter(session_id__in=session_ids).exclude(comment="").update(comment="")
    unsent = TranscriptRequest.objects.filter(session_id__in=session_ids, state=TranscriptState.OWED)
    letters = unsent.update(state=TranscriptState.GIVEN_UP, address="", settled_at=Now())
    questions = gaps.forget_conversations(session_ids)
    data = {"files": len(files), "forms": forms, "comments": comments, "letters": letters, "questions": questions}
    if any(data.values()):
        record(AuditEvent.VISITOR_LEFTOVERS_FORGOTTEN, actor=actor, subject=subject, data=data)


def _filled_in(session_ids: Collection[UUID]) -> QuerySet[VisitorCard]:
    cards: QuerySet[VisitorCard] = VisitorCard.objects.filter(session_id__in=session_ids).exclude(answers={})
    return cards
