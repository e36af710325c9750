"""In which order are rows locked? The session first, always; then the turn's message; the audit head last."""

from __future__ import annotations

from uuid import UUID

from apps.sessions.models import ChatSession
from kernel.errors import NotFound
from kernel.tenancy.scope import current_scope


def lock_session(session_id: UUID) -> ChatSession:
    """The session with its deployment, locked until commit; in one scope always the same object, so that everybody who
    appends there counts on from the same `seq`. Raises `NotFound` for an unknown or foreign id."""
    locked = current_scope().locked
    if session_id not in locked:
        locked[session_id] = _lock(session_id)
    session: ChatSession = locked[session_id]
    return session


def _lock(session_id: UUID) -> ChatSession:
    rows = ChatSession.objects.select_for_update(of=("self",)).select_related("deployment")
    session: ChatSession | None = rows.filter(pk=session_id).first()
    if session is None:
        raise NotFound("conversation")
    return session
