"""Conversations for tests."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from apps.access.tokens import Visitor
from apps.sessions import person_wanted, turn
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession
from apps.sessions.services import accept_message, start_session
from apps.tenants.models import Deployment
from kernel.tenancy import in_scope, in_thread, tenant_scope


def make_session(deployment: Deployment) -> ChatSession:
    started = start_session(deployment)
    with tenant_scope(deployment.tenant_id):
        row: ChatSession = ChatSession.objects.get(pk=started.session_id)
    return row


def say(session: ChatSession, text: str, client_id: str = "") -> Any:
    """A visitor says `text`: the committed result of accepting it."""
    with tenant_scope(session.tenant_id):
        return accept_message(session.pk, text=text, client_id=client_id)


def want_person(session: ChatSession) -> None:
    """The visitor asks for a person."""
    with tenant_scope(session.tenant_id):
        person_wanted.want_person(lock_session(session.pk), because=person_wanted.ASKED)
        session.refresh_from_db()


async def answered(deployment: Any, *lines: str) -> ChatSession:
    """A conversation in which each of the lines, which were said at once, was answered."""
    session = await in_thread(make_session, deployment)
    for line in lines:
        await in_thread(say, session, line)
    for _ in lines:
        state = await in_scope(session.tenant_id, turn.open_turn, session.pk, consumer="test")
        assert state is not None
        await turn.run(state)
    return session


async def served(session: ChatSession) -> None:
    """Whatever waits in this conversation is dealt with, answered or only looked at."""
    while (state := await in_scope(session.tenant_id, turn.open_turn, session.pk, consumer="test")) is not None:
        await turn.run(state)


def visitor_of(deployment: Deployment, session_id: UUID) -> Visitor:
    return Visitor(deployment.public_key, deployment.tenant_id, session_id)
