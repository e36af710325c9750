"""In which order are rows locked? The session first, always; then the turn's message; the audit head last, by itself."""

from __future__ import annotations

from uuid import UUID

from apps.sessions.models import ChatSession
from kernel.errors import NotFound


def lock_session(session_id: UUID) -> ChatSession:
    """The session with its deployment, locked until commit. Raises `NotFound` for an unknown or foreign id."""
    rows = ChatSession.objects.select_for_update(of=("self",)).select_related("deployment")
    session: ChatSession | None = rows.filter(pk=session_id).first()
    if session is None:
        raise NotFound("conversation")
    return session
