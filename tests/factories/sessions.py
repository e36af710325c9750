"""Conversations for tests."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from apps.sessions.models import ChatSession
from apps.sessions.services import accept_message, start_session
from apps.sessions.tokens import Visitor
from apps.tenants.models import Deployment
from kernel.tenancy import tenant_scope


def make_session(deployment: Deployment) -> ChatSession:
    started = start_session(deployment)
    with tenant_scope(deployment.tenant_id):
        row: ChatSession = ChatSession.objects.get(pk=started.session_id)
    return row


def say(session: ChatSession, text: str, client_id: str = "") -> Any:
    """A visitor says `text`: the committed result of accepting it."""
    with tenant_scope(session.tenant_id):
        return accept_message(session.pk, text=text, client_id=client_id)


def visitor_of(deployment: Deployment, session_id: UUID) -> Visitor:
    return Visitor(deployment.public_key, deployment.tenant_id, session_id)
