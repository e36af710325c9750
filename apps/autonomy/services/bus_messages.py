"""Enqueue the bus messages of this room: work for trusted workers, admission and triggers."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from apps.autonomy.enums import TIMED
from apps.autonomy.models import AutonomousSession
from apps.bus import services as bus
from apps.bus.enums import Kind, Queue, Sender
from apps.bus.queries import is_waiting
from kernel.taint import Taint
from kernel.tenancy import current_tenant_id

# Events of `REVIEW_OWED`, each carried out by what `handlers.register_review` names. The values are stored in messages.
ASK, RECALL, RAISE = "ask", "recall", "raise"


def enqueue_review(event: str, subject: UUID, *, message_id: str = "") -> None:
    """Have a trusted worker act on `subject`. Idempotent by `message_id`, which defaults to event and subject.

    The scope has a prefix, so that it is never taken for a conversation's (apps.sessions.runner).
    """
    bus.send_message(
        Queue.TRUSTED,
        kind=Kind.REVIEW_OWED,
        scope_id=f"review:{subject}",
        sender=Sender.RUNTIME,
        message_id=message_id or f"{event}:{subject}",
        payload={"event": event, "subject": str(subject)},
        taint=Taint.AUTH,
    )


def enqueue_admission() -> None:
    """A session was queued, or a place may be free."""
    bus.enqueue(Kind.SESSION_ADMISSION, scope_id=current_tenant_id())


def schedule_admission(scope_id: str, due_at: datetime) -> None:
    """Once for each `scope_id`. Not in the company's scope, where messages that are due now would wait behind it."""
    if not is_waiting(Kind.SESSION_ADMISSION, scope_id):
        bus.enqueue(Kind.SESSION_ADMISSION, scope_id=scope_id, due_at=due_at)


def enqueue_dispatch(session: AutonomousSession) -> None:
    """The session is no longer queued: what has happened for its trigger meanwhile makes another one."""
    if session.trigger_id is not None and session.trigger_kind not in TIMED:
        enqueue_trigger(session.trigger_id)


def enqueue_trigger(trigger_id: UUID) -> None:
    """Something has happened that an event-driven trigger waits for."""
    bus.enqueue(Kind.TRIGGER_DUE, scope_id=trigger_id)
