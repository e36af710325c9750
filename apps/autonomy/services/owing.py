"""What is owed to web processes of this room? One kind of message, in line by what it is about."""

from __future__ import annotations

from uuid import UUID

from apps.bus import services as bus
from apps.bus.enums import Kind, Queue, Sender
from kernel.taint import Taint

ASK, RECALL, AFTER_WORK, LOOK, PLAN, PREFER = "ask", "recall", "after_work", "look", "plan", "prefer"
RAISE = "raise"


def owe(event: str, subject: UUID, *, message_id: str = "") -> None:
    """`message_id`: the same is owed once; without it once a subject and event. A scope with a word in front is no
    conversation (apps.sessions.runner)."""
    bus.enqueue(
        Queue.TRUSTED,
        kind=Kind.REVIEW_OWED,
        scope_id=f"review:{subject}",
        sender=Sender.RUNTIME,
        message_id=message_id or f"{event}:{subject}",
        payload={"event": event, "subject": str(subject)},
        taint=Taint.AUTH,
    )
