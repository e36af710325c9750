"""Append entries to a conversation, numbered without gaps. The only writer of its entries.

A caller holds the session's row lock (`locks.lock_session`). Entries of one transaction are written together just
before it commits; their frames are published after the commit.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from apps.sessions import rules
from apps.sessions.enums import EntryKind, Sender
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.sessions.signals import entries_appended, session_changed
from kernel.clock import now
from kernel.live import publish_on_commit
from kernel.taint import Taint
from kernel.tenancy import before_commit

_MOVED = ("seq", "turns", "language", "preview", "last_sender", "last_active_at")
# What reads as something that was said.
SAID = (EntryKind.MESSAGE, EntryKind.DECISION)


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
    before_commit(_write, (session, entry))
    return entry


def touch(session: ChatSession) -> None:
    """Write the locked session's counters with this transaction, whether anything is appended or not."""
    before_commit(_write, (session, None))


def _write(appended: list[tuple[ChatSession, ChronicleEntry | None]]) -> None:
    """Write all entries of a conversation together with its new state, and publish them after the commit."""
    by_session: dict[UUID, tuple[ChatSession, list[ChronicleEntry]]] = {}
    for session, entry in appended:
        by_session.setdefault(session.pk, (session, []))[1].extend([entry] if entry else [])
    for session, entries in by_session.values():
        session.last_active_at = entries[-1].created_at if entries else session.last_active_at
        ChatSession.objects.filter(pk=session.pk).update(**{name: getattr(session, name) for name in _MOVED})
        ChronicleEntry.objects.bulk_create(entries)
        session_changed(session.pk)
        if entries:
            entries_appended(session, entries)
        for entry in entries:
            publish_on_commit(rules.group_of(session.pk), {"type": "chat.frame", "frame": rules.frame_of(entry)})
