"""What is in a conversation, and which conversations are there? Reads only, inside the tenant's scope."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import Q, QuerySet

from apps.sessions.enums import Owner
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.tenants.models import Deployment
from kernel.errors import NotFound
from kernel.tenancy import current_tenant_id
from kernel.tenancy.rows import Rows

TABS = ("mine", "bot", "unassigned", "all")
REPLAY_LIMIT = 500
_SESSIONS = Rows(ChatSession, alias="session")
_DEPLOYMENTS = Rows(Deployment, alias="deployment")
_FOR_TURN = f"""
    SELECT {_SESSIONS.columns}, {_DEPLOYMENTS.columns} FROM silas_sessions_chatsession session
    JOIN tenants_deployment deployment ON deployment.id = session.deployment_id
    WHERE session.id = %s AND session.tenant_id = %s
"""  # noqa: S608  (our own column names)
_SAID = """
    SELECT id, seq, sender, text, taint FROM silas_sessions_chronicleentry
    WHERE session_id = %s AND kind = 'message' AND seq < %s ORDER BY seq DESC LIMIT %s
"""


class Said(NamedTuple):
    """A recorded message, as much of it as a turn needs."""

    pk: UUID
    seq: int
    sender: str
    text: str
    taint: str


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


def seqs_of(session_ids: Iterable[UUID]) -> dict[UUID, int]:
    """How far each of these conversations has come: the last `seq`, by session."""
    return dict(ChatSession.objects.filter(pk__in=list(session_ids)).values_list("pk", "seq"))


def session_for_turn(session_id: UUID) -> ChatSession:
    """The session with its deployment, as a turn begins with it. Raises `NotFound`."""
    with connection.cursor() as cursor:
        cursor.execute(_FOR_TURN, [session_id, current_tenant_id()])
        row = cursor.fetchone()
    if row is None:
        raise NotFound("conversation")
    session = _SESSIONS.make(row[: _SESSIONS.width])
    session.deployment = _DEPLOYMENTS.make(row[_SESSIONS.width :])
    return session


def recent_messages(session_id: UUID, *, before_seq: int, limit: int) -> list[Said]:
    """The last `limit` messages before `before_seq`, oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(_SAID, [session_id, before_seq, limit])
        return [Said(*row) for row in cursor.fetchall()][::-1]


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
