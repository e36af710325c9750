"""In which order are rows locked? What work locks of its own comes before (`apps.work.locks`, `proposals.hold`); then
the session, always; then the turn's message; the audit head last."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from apps.sessions.models import ChatSession
from kernel.errors import NotFound
from kernel.tenancy.rows import Question, Rows, ask
from kernel.tenancy.scope import current_scope, current_tenant_id

_SESSIONS = Rows(ChatSession)
_LOCKED = (
    f"SELECT {_SESSIONS.columns} FROM silas_sessions_chatsession"  # noqa: S608  (our own column names)
    " WHERE id = %s AND tenant_id = %s FOR NO KEY UPDATE"
)


def lock_session(session_id: UUID) -> ChatSession:
    """The session, locked until commit; in one scope always the same object, so that everybody who
    appends there counts on from the same `seq`. Raises `NotFound` for an unknown or foreign id."""
    session: ChatSession = lock_session_and_ask(session_id)[0]
    return session


def lock_session_and_ask(session_id: UUID, *questions: Question[Any]) -> tuple[Any, ...]:
    """`lock_session`, and the answers to what is asked under its lock; one round trip."""
    locked = current_scope().locked
    if session_id in locked:
        return (locked[session_id], *ask(*questions))
    answers: tuple[Any, ...] = ask(Question(_LOCKED, [session_id, current_tenant_id()], _made), *questions)
    if answers[0] is None:
        raise NotFound("conversation")
    locked[session_id] = answers[0]
    return answers


def _made(rows: list[tuple[Any, ...]]) -> ChatSession | None:
    return _SESSIONS.make(rows[0]) if rows else None
