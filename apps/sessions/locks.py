"""Row locks in their order: rows that work locks first (`apps.work.locks`, `proposals.hold`), the session, the turn's
message, and the audit head last."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet

from apps.sessions.models import ChatSession
from kernel.errors import NotFound
from kernel.tenancy import built_once
from kernel.tenancy.scope import current_scope


def lock_session(session_id: UUID) -> ChatSession:
    """The session, locked until commit; in one scope always the same object, so that everybody who
    appends there counts on from the same `seq`. Raises `NotFound` for an unknown or foreign id."""
    # A second read would be another object with an older `seq`, and two entries would get one number.
    locked = current_scope().locked
    if session_id not in locked:
        found = _locked.rows(session_id).value
        if not found:
            raise NotFound()
        locked[session_id] = found[0]
    session: ChatSession = locked[session_id]
    return session


@built_once
def _locked(session_id: UUID) -> QuerySet[ChatSession]:
    return ChatSession.objects.select_for_update(no_key=True).filter(pk=session_id)
