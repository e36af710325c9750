"""Events of the sessions room, raised inside the transaction that changed the conversation."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from apps.sessions.models import ChatSession
from kernel.events import Event

# (session id): something in the conversation changed that staff may be looking at.
session_changed: Event[[UUID]] = Event("session_changed")
# (session, the visitor's words, scrubbed): the bot answered without a document, a tool or a person to rest on.
question_unanswered: Event[[ChatSession, str]] = Event("question_unanswered")
# (session ids): the company keeps the words of these conversations no longer.
conversations_forgotten: Event[[Collection[UUID]]] = Event("conversations_forgotten")
