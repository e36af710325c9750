"""In which order are rows locked? The session first, always; then the turn's message; the audit head last."""

from __future__ import annotations

from uuid import UUID

from django.db import connection

from apps.sessions.models import ChatSession
from kernel.errors import NotFound
from kernel.tenancy.rows import Rows
from kernel.tenancy.scope import current_scope, current_tenant_id

_SESSIONS = Rows(ChatSession)
_LOCK = (
    f"SELECT {_SESSIONS.columns} FROM silas_sessions_chatsession"  # noqa: S608  (our own column names)
    " WHERE id = %s AND tenant_id = %s FOR NO KEY UPDATE"
)


def lock_session(session_id: UUID) -> ChatSession:
    """The session, locked until commit; in one scope always the same object, so that everybody who
    appends there counts on from the same `seq`. Raises `NotFound` for an unknown or foreign id."""
    locked = current_scope().locked
    if session_id not in locked:
        locked[session_id] = _lock(session_id)
    session: ChatSession = locked[session_id]
    return session


def _lock(session_id: UUID) -> ChatSession:
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, [session_id, current_tenant_id()])
        row = cursor.fetchone()
    if row is None:
        raise NotFound("conversation")
    return _SESSIONS.make(row)
