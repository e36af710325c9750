"""What was said, in which order? The only writer of a conversation's entries, but for a visitor's messages, which
`accept_sql` keeps; numbers them without gaps.

Everybody who appends holds the session's row lock (`locks.lock_session`). Entries of one transaction are written
together just before it commits; the frames go to everybody present after it has.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import connection
from psycopg.types.json import Jsonb

from apps.sessions import rules
from apps.sessions.enums import EntryKind, Sender
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.sessions.signals import session_changed
from kernel.clock import now
from kernel.live import publish_on_commit
from kernel.taint import Taint
from kernel.tenancy import gather_for_commit

_MOVED = ("seq", "turns", "language", "preview", "last_sender", "last_active_at")
# What reads as something that somebody said.
SAID = (EntryKind.MESSAGE, EntryKind.DECISION)
_COLUMNS = tuple(field.attname for field in ChronicleEntry._meta.concrete_fields)
_WORDS = frozenset({"kind", "sender", "taint"})
_ROW = f"({', '.join(['%s'] * len(_COLUMNS))})"
_MOVE = f"UPDATE silas_sessions_chatsession SET {', '.join(f'{name} = %s' for name in _MOVED)} WHERE id = %s"  # noqa: S608  (our own column names)
_WRITE = f"WITH moved AS ({_MOVE}) INSERT INTO silas_sessions_chronicleentry ({', '.join(_COLUMNS)}) VALUES "  # noqa: S608  (the same)


def append(
    session: ChatSession,
    *,
    kind: EntryKind,
    sender: Sender,
    text: str = "",
    payload: dict[str, Any] | None = None,
    taint: Taint = Taint.EXTERNAL,
    **fields: Any,
) -> ChronicleEntry:
    """Append to `session`, which the caller has locked; returns the entry with its `seq`. Written at commit."""
    session.seq += 1
    entry = ChronicleEntry(
        tenant_id=session.tenant_id,
        session_id=session.pk,
        seq=session.seq,
        kind=kind,
        sender=sender,
        text=text,
        payload=payload or {},
        taint=taint,
        created_at=now(),
        **fields,
    )
    if kind in SAID and text:
        session.preview, session.last_sender = rules.preview_of(text), sender
    gather_for_commit(_write, (session, entry))
    return entry


def touch(session: ChatSession) -> None:
    """Write the locked session's counters with this transaction, whether anything is appended or not."""
    gather_for_commit(_write, (session, None))


def _write(appended: list[tuple[ChatSession, ChronicleEntry | None]]) -> None:
    """All entries of a conversation and its new state in one statement."""
    by_session: dict[UUID, tuple[ChatSession, list[ChronicleEntry]]] = {}
    for session, entry in appended:
        by_session.setdefault(session.pk, (session, []))[1].extend([entry] if entry else [])
    for session, entries in by_session.values():
        session.last_active_at = entries[-1].created_at if entries else session.last_active_at
        _execute(session, entries)
        announce(session.pk, entries)


def announce(session_id: UUID, entries: list[ChronicleEntry]) -> None:
    """Tell whoever is present what was written, once it is committed."""
    session_changed(session_id)
    for entry in entries:
        publish_on_commit(rules.group_of(session_id), {"type": "chat.frame", "frame": rules.frame_of(entry)})


def _execute(session: ChatSession, entries: list[ChronicleEntry]) -> None:
    statement = _WRITE + ", ".join([_ROW] * len(entries)) if entries else _MOVE
    values = [_value(entry, name) for entry in entries for name in _COLUMNS]
    with connection.cursor() as cursor:
        cursor.execute(statement, [*(getattr(session, name) for name in _MOVED), session.pk, *values])


def _value(entry: ChronicleEntry, name: str) -> Any:
    value = getattr(entry, name)
    return Jsonb(value) if name == "payload" else str(value) if name in _WORDS else value
