"""Conversations and their entries. Reads only, inside the tenant's scope."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db.models import QuerySet

from apps.memory.enums import ScopeKind
from apps.memory.schemas import Scope, conversation_scope
from apps.sessions.enums import EntryKind, Sender
from apps.sessions.models import ChatSession, ChronicleEntry, Turn
from kernel.errors import NotFound
from kernel.tenancy import Read, built_once
from kernel.tenancy.reads import Rows

REPLAY_LIMIT = 500
# What was said: messages, and what the visitor was asked and chose; with each what gates made of it. A visitor's words
# that no turn's gates have let in are kept out, for any reason that they were not let in: a block, a process that
# died (ADR 43).
_SAID = """
    WITH entry AS MATERIALIZED (
        SELECT id, seq, sender, text, taint, created_at,
            sender = 'visitor' AND kind = 'decision' AND payload ? 'answers' AS is_form
        FROM silas_sessions_chronicleentry
        WHERE session_id = %s AND kind IN ('message', 'decision') AND text <> '' AND {which}
    ), looked AS (
        SELECT message_seq, started_at, read_as, CASE
            WHEN status = 'stopped' AND step = 'input_gates' AND starts_with(reason, 'gate:') THEN false
            WHEN status IN ('done', 'stopped') OR status = 'paused' AND step <> 'input_gates' THEN true
            WHEN status = 'failed' AND step NOT IN ('precompile_gates', 'input_gates') THEN true
        END AS let_in
        FROM silas_sessions_turn WHERE session_id = %s AND message_seq >= (SELECT min(seq) FROM entry)
    )
    SELECT id, seq, sender, text, taint, sender = 'visitor' AND NOT coalesce((
        SELECT bool_and(let_in) FROM looked WHERE message_seq = seq
    ), false), (
        SELECT read_as FROM looked WHERE message_seq = seq AND sender = 'visitor' AND read_as IS NOT NULL
        ORDER BY started_at DESC LIMIT 1
    ), created_at, is_form
    FROM entry ORDER BY seq DESC
"""
_NEWEST_SAID = _SAID.format(which="seq <= %s ORDER BY seq DESC LIMIT %s")
_SAID_AT = _SAID.format(which="seq = ANY(%s)")
KEPT_OUT = "[This message was kept back by a rule of the company.]"


class Said(NamedTuple):
    """A recorded message, as much of it as a turn needs. `kept_out`: the gates have not let it in, so no model reads
    it; `read_as`: what models read of it where a gate reworded it; `is_form`: the visitor filled it into a form that
    was put to them."""

    pk: UUID
    seq: int
    sender: str
    text: str
    taint: str
    kept_out: bool = False
    read_as: str | None = None
    at: datetime | None = None
    is_form: bool = False

    @property
    def shown(self) -> str:
        """What models may read of it."""
        if self.kept_out:
            return KEPT_OUT
        return self.text if self.read_as is None else self.read_as


def work_completed(session_id: UUID, *, after: int, until: int) -> bool:
    """Whether work that was promised in the conversation was done between these two messages."""
    told = ChronicleEntry.objects.filter(session_id=session_id, kind=EntryKind.STATUS, seq__gt=after, seq__lt=until)
    return bool(told.filter(payload__status="done").exists())


def session_by_id(session_id: UUID) -> ChatSession:
    """Raises `NotFound` for an unknown or foreign id."""
    return session_with(session_id).value


def session_with(session_id: UUID) -> Read[ChatSession]:
    """`session_by_id` as a statement that can be sent together with others."""
    return _session.rows(session_id).parsed(_known)


def _known(found: list[ChatSession]) -> ChatSession:
    if not found:
        raise NotFound()
    return found[0]


@built_once
def _session(session_id: UUID) -> QuerySet[ChatSession]:
    return ChatSession.objects.select_related("deployment", "owner_user").filter(pk=session_id)


def chronicle_after(session_id: UUID, seq: int, *, limit: int = REPLAY_LIMIT) -> list[ChronicleEntry]:
    """Entries after `seq`, in order, at most `limit`."""
    return list(ChronicleEntry.objects.filter(session_id=session_id, seq__gt=seq).order_by("seq")[:limit])


def releases_by_turn(session_id: UUID) -> dict[int, int]:
    """The number of the release that gave each answer of a conversation, by turn."""
    turns = Turn.objects.filter(session_id=session_id).exclude(release=None).order_by("started_at")
    return dict(turns.values_list("number", "release__number"))


def seqs_of(session_ids: Iterable[UUID]) -> dict[UUID, int]:
    """How far each of these conversations has come: the last `seq`, by session."""
    return dict(ChatSession.objects.filter(pk__in=list(session_ids)).values_list("pk", "seq"))


def said_until(session_id: UUID, seq: int, *, limit: int) -> Read[list[Said]]:
    """The last `limit` messages up to `seq`, oldest first."""
    return Read(_NEWEST_SAID, [session_id, seq, limit, session_id], _oldest_first)


def messages_at(session_id: UUID, seqs: list[int]) -> list[Said]:
    """The messages with these numbers, in order."""
    return Read(_SAID_AT, [session_id, seqs, session_id], _oldest_first).value


def file_names(session_id: UUID, ids: Collection[str]) -> dict[str, str]:
    """The names of these files of a conversation, by id."""
    rows = ChronicleEntry.objects.filter(session_id=session_id, kind=EntryKind.FILE, payload__file_id__in=list(ids))
    return dict(rows.values_list("payload__file_id", "text"))


def _oldest_first(rows: Rows) -> list[Said]:
    return [Said(*row) for row in reversed(rows)]


def thread(session_id: UUID, *, limit: int = 300) -> list[ChronicleEntry]:
    """The newest `limit` entries of a conversation, oldest first."""
    rows = ChronicleEntry.objects.filter(session_id=session_id).select_related("author").order_by("-seq")[:limit]
    return list(rows)[::-1]


def answers_citing(document_ids: Collection[UUID], *, since: datetime, most: int = 2000) -> dict[UUID, int]:
    """How many of the bot's newest answers since then cite each of these documents; at most `most` answers are read."""
    said = ChronicleEntry.objects.filter(kind=EntryKind.MESSAGE, sender=Sender.BOT, created_at__gte=since)
    cited = (
        said.filter(payload__has_key="citations").order_by("-created_at").values_list("payload__citations", flat=True)
    )
    counts: dict[UUID, int] = {}
    for citations in cited[:most]:
        named = {str(citation.get("document_id")) for citation in citations}
        for document_id in document_ids:
            if str(document_id) in named:
                counts[document_id] = counts.get(document_id, 0) + 1
    return counts


def first_staff_reply(session_id: UUID, *, after: datetime, least: int) -> str:
    """The first message of at least `least` characters that a member wrote after that moment, or ""."""
    said = ChronicleEntry.objects.filter(session_id=session_id, kind=EntryKind.MESSAGE, sender=Sender.HUMAN)
    texts = said.filter(created_at__gt=after).order_by("seq").values_list("text", flat=True)[:20]
    return next((text.strip() for text in texts if len(text.strip()) >= least), "")


def scopes_about(session: ChatSession) -> list[Scope]:
    """Whose memory a member means by this visitor's: whether the customer's level still stands does not matter."""
    own = [conversation_scope(session.pk)]
    return own + ([Scope(ScopeKind.CUSTOMER, session.whose)] if session.whose else [])
