"""Enqueue the bus messages of this room: work for trusted workers, admission, triggers and suggestion checks."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from apps.autonomy.enums import TIMED
from apps.autonomy.models import AutonomousSession
from apps.bus import services as bus
from apps.bus.enums import Kind, Queue, Sender
from apps.bus.queries import is_waiting
from kernel.clock import now
from kernel.taint import Taint
from kernel.tenancy import before_commit, current_tenant_id

# Events of `REVIEW_OWED`, carried out by `handlers.handle_review`. The values are stored in messages.
ASK, RECALL, AFTER_WORK, PLAN, PREFER = "ask", "recall", "after_work", "plan", "prefer"
RAISE = "raise"
SUGGESTION_INTERVAL_SECONDS = 900


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


def schedule_suggestions() -> None:
    """Check the company for suggestions every quarter of an hour from now on (`suggestions.next_check`)."""
    before_commit(_schedule_check, None)


def _schedule_check(_: list[None]) -> None:
    tenant_id = current_tenant_id()
    if not is_waiting(Kind.SUGGESTION_LOOK, tenant_id):
        bus.schedule(
            Kind.SUGGESTION_LOOK, scope_id=tenant_id, due_at=now() + timedelta(seconds=SUGGESTION_INTERVAL_SECONDS)
        )
