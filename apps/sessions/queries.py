"""What is in a conversation, and which conversations are there? Reads only, inside the tenant's scope."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Q, QuerySet

from apps.sessions.enums import Owner
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.tenants.models import Deployment
from kernel.errors import NotFound
from kernel.tenancy import current_tenant_id
from kernel.tenancy.rows import Question, Rows, ask

TABS = ("mine", "bot", "unassigned", "all")
REPLAY_LIMIT = 500
_SESSIONS = Rows(ChatSession, alias="session")
_DEPLOYMENTS = Rows(Deployment, alias="deployment")
_FOR_TURN = f"""
    SELECT {_SESSIONS.columns}, {_DEPLOYMENTS.columns} FROM silas_sessions_chatsession session
    JOIN tenants_deployment deployment ON deployment.id = session.deployment_id
    WHERE session.id = %s AND session.tenant_id = %s
"""  # noqa: S608  (our own column names)
# What was said: messages, and what the visitor was asked and chose; with each what gates made of it. A visitor's words
# that no turn's gates have let in are kept out, whatever the reason is that they have not: a block, a process that
# died (ADR 43).
_SAID = """
    WITH entry AS MATERIALIZED (
        SELECT id, seq, sender, text, taint FROM silas_sessions_chronicleentry
        WHERE session_id = %s AND kind IN ('message', 'decision') AND text <> '' AND {which}
    ), looked AS (
        SELECT message_seq, started_at, read_as, CASE
            WHEN status = 'stopped' AND step = 'input_gates' AND starts_with(reason, 'gate:') THEN false
            WHEN status IN ('done', 'stopped') THEN true
            WHEN status = 'failed' AND step NOT IN ('precompile_gates', 'input_gates') THEN true
        END AS let_in
        FROM silas_sessions_turn WHERE session_id = %s AND message_seq >= (SELECT min(seq) FROM entry)
    )
    SELECT id, seq, sender, text, taint, sender = 'visitor' AND NOT coalesce((
        SELECT bool_and(let_in) FROM looked WHERE message_seq = seq
    ), false), (
        SELECT read_as FROM looked WHERE message_seq = seq AND sender = 'visitor' AND read_as IS NOT NULL
        ORDER BY started_at DESC LIMIT 1
    )
    FROM entry ORDER BY seq DESC
"""
_NEWEST_SAID = _SAID.format(which="seq <= %s ORDER BY seq DESC LIMIT %s")
_SAID_AT = _SAID.format(which="seq = ANY(%s)")
KEPT_OUT = "[This message was kept back by a rule of the company.]"


class Said(NamedTuple):
    """A recorded message, as much of it as a turn needs. `kept_out`: the gates have not let it in, so no model reads
    it; `read_as`: what models read of it where a gate reworded it."""

    pk: UUID
    seq: int
    sender: str
    text: str
    taint: str
    kept_out: bool = False
    read_as: str | None = None

    @property
    def shown(self) -> str:
        """What models may read of it."""
        if self.kept_out:
            return KEPT_OUT
        return self.text if self.read_as is None else self.read_as


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


def session_for_turn(session_id: UUID, *, until_seq: int, limit: int) -> tuple[ChatSession, list[Said]]:
    """The session with its deployment, and its last `limit` messages up to `until_seq`, oldest first, as a turn begins
    with them; one round trip. Raises `NotFound`."""
    session, said = ask(
        Question(_FOR_TURN, [session_id, current_tenant_id()], _with_deployment),
        Question(_NEWEST_SAID, [session_id, until_seq, limit, session_id], _read_backwards),
    )
    if session is None:
        raise NotFound("conversation")
    return session, said


def messages_at(session_id: UUID, seqs: list[int]) -> list[Said]:
    """The messages with these numbers, in order."""
    (said,) = ask(Question(_SAID_AT, [session_id, seqs, session_id], _read_backwards))
    return said


def _read_backwards(rows: list[tuple[Any, ...]]) -> list[Said]:
    return [Said(*row) for row in rows][::-1]


def _with_deployment(rows: list[tuple[Any, ...]]) -> ChatSession | None:
    if not rows:
        return None
    session = _SESSIONS.make(rows[0][: _SESSIONS.width])
    session.deployment = _DEPLOYMENTS.make(rows[0][_SESSIONS.width :])
    return session


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
