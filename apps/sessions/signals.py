"""Events of the sessions room, raised inside the transaction that changed the conversation."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from uuid import UUID

from apps.sessions.models import ChatSession, ChronicleEntry
from kernel.events import Event

# (session id): something in the conversation changed that staff may be looking at.
session_changed: Event[[UUID]] = Event("session_changed")
# (session, its new entries in order): they were written, and commit with the transaction.
entries_appended: Event[[ChatSession, Sequence[ChronicleEntry]]] = Event("entries_appended")
# (session): it waits for a person from now on, or for another team.
person_wanted: Event[[ChatSession]] = Event("person_wanted")
# (session): its visitor has just been verified as its `customer`.
customer_verified: Event[[ChatSession]] = Event("customer_verified")
# (session): the page said something else of its visitor than before; it proves nothing.
visitor_described: Event[[ChatSession]] = Event("visitor_described")
# (session, the visitor's words, scrubbed): the bot answered without a document, a tool or a person to rest on.
question_unanswered: Event[[ChatSession, str]] = Event("question_unanswered")
# (session ids): the company keeps the words of these conversations no longer.
conversations_forgotten: Event[[Collection[UUID]]] = Event("conversations_forgotten")
