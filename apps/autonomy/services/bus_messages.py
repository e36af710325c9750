"""Messages that this room owes: questions to people (one kind, in line by what it is about), looks at who may begin."""

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

ASK, RECALL, AFTER_WORK, PLAN, PREFER = "ask", "recall", "after_work", "plan", "prefer"
RAISE = "raise"
SUGGESTION_INTERVAL_SECONDS = 900


def enqueue_review(event: str, subject: UUID, *, message_id: str = "") -> None:
    """`message_id`: the same is owed once; without it once a subject and event. A scope with a word in front is no
    conversation (apps.sessions.runner)."""
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
    """A session came into line, or a place may have become free."""
    bus.enqueue(Kind.SESSION_ADMISSION, scope_id=current_tenant_id())


def schedule_admission(scope_id: str, due_at: datetime) -> None:
    """In a scope of its own, and once: in the company's the messages of now would wait behind it."""
    if not is_waiting(Kind.SESSION_ADMISSION, scope_id):
        bus.enqueue(Kind.SESSION_ADMISSION, scope_id=scope_id, due_at=due_at)


def enqueue_dispatch(session: AutonomousSession) -> None:
    """A session waits no longer: what has happened for its trigger meanwhile makes another one."""
    if session.trigger_id is not None and session.trigger_kind not in TIMED:
        enqueue_trigger(session.trigger_id)


def enqueue_trigger(trigger_id: UUID) -> None:
    """Something has happened for a trigger that no clock begins."""
    bus.enqueue(Kind.TRIGGER_DUE, scope_id=trigger_id)


def schedule_suggestions() -> None:
    """Have the company looked at for suggestions from now on, every quarter of an hour (`suggesting.next_look`)."""
    before_commit(_schedule_looks, None)


def _schedule_looks(_: list[None]) -> None:
    tenant_id = current_tenant_id()
    if not is_waiting(Kind.SUGGESTION_LOOK, tenant_id):
        bus.schedule(
            Kind.SUGGESTION_LOOK, scope_id=tenant_id, due_at=now() + timedelta(seconds=SUGGESTION_INTERVAL_SECONDS)
        )
