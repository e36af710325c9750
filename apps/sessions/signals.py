"""What does the sessions room announce? Inside the transaction that changed the conversation."""

from __future__ import annotations

from uuid import UUID

from kernel.events import Event

# (session id): something in the conversation changed that staff may be looking at.
session_changed: Event[[UUID]] = Event("session_changed")
