"""Row locks in their order: rows that work locks first (`apps.work.locks`, `proposals.hold`), the session, the turn's
message, and the audit head last."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from apps.sessions.models import ChatSession
from kernel.errors import NotFound
from kernel.tenancy import Read, built_once, read_together
from kernel.tenancy.scope import current_scope


def lock_session(session_id: UUID, *along: Read[Any]) -> ChatSession:
    """The session, locked until commit; in one scope always the same object, so that everybody who
    appends there counts on from the same `seq`. `along` is sent with the lock and runs once it is held. Raises
    `NotFound` for an unknown or foreign id."""
    # A second read would be another object with an older `seq`, and two entries would get one number.
    locked = current_scope().locked
    if session_id not in locked:
        found = _locked.rows(session_id)
        read_together(found, *along)
        if not found.value:
            raise NotFound()
        locked[session_id] = found.value[0]
    elif along:
        read_together(*along)
    session: ChatSession = locked[session_id]
    return session


@built_once
def _locked(session_id: UUID) -> QuerySet[ChatSession]:
    return ChatSession.objects.select_for_update(no_key=True).filter(pk=session_id)
