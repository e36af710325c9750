"""Conversations that were answered before a page is looked at: here, or by the web process, whichever is first."""

from __future__ import annotations

import asyncio

from apps.sessions import turn
from apps.sessions.enums import TurnStatus
from apps.sessions.models import ChatSession, Turn
from kernel.tenancy import in_scope


async def all_answered(session: ChatSession, *, turns: int) -> None:
    """Everything said was answered, in so many turns. The web process takes what nobody has taken for a while."""
    async with asyncio.timeout(60):
        while await in_scope(session.tenant_id, _done, session) < turns:
            state = await in_scope(session.tenant_id, turn.open_turn, session.pk, consumer="test")
            if state is None:
                await asyncio.sleep(0.05)
            else:
                await turn.run(state)


def _done(session: ChatSession) -> int:
    return int(Turn.objects.filter(session_id=session.pk, status=TurnStatus.DONE).count())
