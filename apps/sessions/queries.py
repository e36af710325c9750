"""What is in a conversation, and which conversations are there? Reads only, inside the tenant's scope."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from apps.sessions.enums import EntryKind, Owner
from apps.sessions.models import ChatSession, ChronicleEntry
from kernel.errors import NotFound

TABS = ("mine", "bot", "unassigned", "all")
REPLAY_LIMIT = 500


def session_by_id(session_id: UUID) -> ChatSession:
    """Raises `NotFound` for an unknown or foreign id."""
    rows = ChatSession.objects.select_related("deployment", "owner_user")
    session: ChatSession | None = rows.filter(pk=session_id).first()
    if session is None:
        raise NotFound("conversation")
    return session


def chronicle_after(session_id: UUID, seq: int, *, limit: int = REPLAY_LIMIT) -> list[ChronicleEntry]:
    """Entries after `seq`, in order, at most `limit`."""
    return list(ChronicleEntry.objects.filter(session_id=session_id, seq__gt=seq).order_by("seq")[:limit])


def recent_messages(session_id: UUID, *, before_seq: int, limit: int) -> list[ChronicleEntry]:
    """The last `limit` messages before `before_seq`, oldest first."""
    said = ChronicleEntry.objects.filter(session_id=session_id, kind=EntryKind.MESSAGE, seq__lt=before_seq)
    return list(said.order_by("-seq")[:limit])[::-1]


def inbox(tab: str, user: Any, *, limit: int = 100) -> QuerySet[ChatSession]:
    """Conversations of one tab with something said in them, last active first."""
    rows: QuerySet[ChatSession] = ChatSession.objects.filter(seq__gt=0).select_related("deployment", "owner_user")
    return rows.filter(_in_tab(tab, user)).order_by("-last_active_at")[:limit]


def tab_counts(user: Any) -> dict[str, int]:
    rows = ChatSession.objects.filter(seq__gt=0)
    return {tab: rows.filter(_in_tab(tab, user)).count() for tab in TABS}


def unassigned_count() -> int:
    """How many visitors wait for a person and have none."""
    return int(ChatSession.objects.filter(_in_tab("unassigned", None), seq__gt=0).count())


def thread(session_id: UUID, *, limit: int = 300) -> list[ChronicleEntry]:
    """The newest `limit` entries of a conversation, oldest first."""
    rows = ChronicleEntry.objects.filter(session_id=session_id).select_related("author").order_by("-seq")[:limit]
    return list(rows)[::-1]


def _in_tab(tab: str, user: Any) -> Q:
    if tab == "mine":
        return Q(owner=Owner.HUMAN, owner_user=user)
    if tab == "bot":
        return Q(owner=Owner.BOT, wanted_person_at=None)
    if tab == "unassigned":
        return Q(owner=Owner.BOT, wanted_person_at__isnull=False)
    return Q()
