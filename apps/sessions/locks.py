"""Row locks in their order: rows that work locks first (`apps.work.locks`, `proposals.hold`), the session, the turn's
message, and the audit head last."""

from __future__ import annotations

from uuid import UUID

from apps.sessions.models import ChatSession
from kernel.errors import NotFound
from kernel.tenancy.scope import current_scope


def lock_session(session_id: UUID) -> ChatSession:
    """The session, locked until commit; in one scope always the same object, so that everybody who
    appends there counts on from the same `seq`. Raises `NotFound` for an unknown or foreign id."""
    # A second read would be another object with an older `seq`, and two entries would get one number.
    locked = current_scope().locked
    if session_id not in locked:
        try:
            locked[session_id] = ChatSession.objects.select_for_update(no_key=True).get(pk=session_id)
        except ChatSession.DoesNotExist:
            raise NotFound() from None
    session: ChatSession = locked[session_id]
    return session
