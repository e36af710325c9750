"""List a browser's conversations: those whose resume tokens it presents.

A browser keeps one resume token per conversation, and there is no name under which several could be asked for: the
token of one conversation, short-lived or long, reveals nothing about any other (ADR 55).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, Subquery
from django.db.models.functions import Coalesce

from apps.access import tokens
from apps.sessions.enums import EntryKind, Sender
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.sessions.queries import session_by_id
from apps.visitors.enums import AskStatus
from apps.visitors.models import VisitorCard
from apps.work.enums import WorkItemStatus, WorkItemType
from apps.work.models import WorkItem
from kernel.clock import now

MOST = 30


@dataclass(frozen=True)
class ListedConversation:
    """`token` is the one by which it was shown. `unread` counts messages of bot and agents, as the widget's launcher
    does; `needs_answer`: a question to the visitor is open; `awaits_approval`: a request waits for the team."""

    token: str
    session: ChatSession
    unread: int
    needs_answer: bool
    awaits_approval: bool


def conversations(session_id: UUID, resume_tokens: Sequence[str]) -> list[ListedConversation]:
    """Last active first: of the same deployment as the one that asks, with something said in it, and not of another
    customer than who is known here. A wrong token is passed by."""
    asking = session_by_id(session_id)
    by_hash = {tokens.hash_resume_token(each): each for each in resume_tokens[:MOST]}
    rows = ChatSession.objects.filter(deployment_id=asking.deployment_id, resume_hash__in=list(by_hash), seq__gt=0)
    answers = ChronicleEntry.objects.filter(
        session=OuterRef("pk"),
        seq__gt=OuterRef("visitor_read_seq"),
        kind=EntryKind.MESSAGE,
        sender__in=(Sender.BOT, Sender.HUMAN),
    )
    questions = VisitorCard.objects.filter(session=OuterRef("pk"), status=AskStatus.OPEN, expires_at__gt=now())
    requests = WorkItem.objects.filter(session_id=OuterRef("pk"), status=WorkItemStatus.PENDING, approval_token=None)
    unread = answers.order_by().values("session").annotate(count=Count("pk")).values("count")
    found = rows.annotate(
        unread=Coalesce(Subquery(unread), 0),
        needs_answer=Exists(questions),
        awaits_approval=Exists(requests.exclude(type=WorkItemType.GOAL)),
    )
    return [
        ListedConversation(by_hash[row.resume_hash], row, row.unread, row.needs_answer, row.awaits_approval)
        for row in found.order_by("-last_active_at")
        if not asking.whose or row.whose in ("", asking.whose)
    ]
