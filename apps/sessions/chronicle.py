"""What was said, in which order? The only writer of a conversation's entries; numbers them without gaps.

Everybody who appends holds the session's row lock (`locks.lock_session`). Entries of one transaction are written
together just before it commits; the frames go to everybody present after it has.
"""

from __future__ import annotations

from typing import Any

from apps.sessions import rules
from apps.sessions.enums import EntryKind, Sender
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.sessions.signals import session_changed
from kernel.clock import now
from kernel.live import publish_on_commit
from kernel.taint import Taint
from kernel.tenancy import gather_for_commit


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
    if kind == EntryKind.MESSAGE:
        session.preview, session.last_sender = rules.preview_of(text), sender
    gather_for_commit(_write, (session, entry))
    return entry


def _write(appended: list[tuple[ChatSession, ChronicleEntry]]) -> None:
    entries = [entry for _, entry in appended]
    ChronicleEntry.objects.bulk_create(entries)
    for session in {session.pk: session for session, _ in appended}.values():
        session.last_active_at = entries[-1].created_at
        session.save(update_fields=["seq", "preview", "last_sender", "last_active_at"])
        session_changed(session.pk)
    for entry in entries:
        frame = {"type": "chat.frame", "frame": rules.frame_of(entry)}
        publish_on_commit(rules.group_of(entry.session_id), frame)
