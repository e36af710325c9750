"""Rows that are sent outside, and how each arrives once: written with what it tells, sent by `handlers.handle_outbox`.

Each row enqueues one bus message, which holds when it is due and who sends it. It is retried until it arrives or the
last attempt fails, and never sent after it arrived. A receiver whose answer is lost may get a delivery twice: the row's
id tells that it is the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models.functions import Now

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.autonomy.enums import Channel, OutboxState, TaskEvent
from apps.autonomy.models import AutonomousSession, Notification, Outbox, Webhook
from apps.bus.enums import Kind, SetAside
from apps.bus.services import enqueue
from apps.bus.signals import set_aside
from kernel.tenancy import before_commit

MOST_ATTEMPTS = 8
_MOST_SECONDS = 3600


def enqueue_result_email(session: AutonomousSession, user_id: UUID, counts: Mapping[str, int]) -> None:
    """Enqueue an email with the numbers of results and where to read them, without their text."""
    body = {"task": session.task.name, "session": str(session.pk), "counts": dict(counts)}
    row = Outbox(
        channel=Channel.EMAIL,
        user_id=user_id,
        event=TaskEvent.COMPLETED,
        key=f"email:{session.origin}:{user_id}",
        body=body,
    )
    enqueue_rows([row])


def enqueue_notice_email(notice: Notification) -> None:
    """Enqueue an email about a bad end, once for each end, to its member or to the owners.

    Whether and when they want one is checked when it is sent.
    """
    row = Outbox(
        channel=Channel.EMAIL,
        user_id=notice.user_id,
        notice_id=notice.pk,
        event=TaskEvent.FAILED,
        key=f"notice:{notice.pk}:{notice.session_id}:{notice.reason}"[:200],
    )
    enqueue_rows([row])


def enqueue_webhooks(
    session: AutonomousSession,
    data: Mapping[str, object],
    *,
    event: TaskEvent = TaskEvent.COMPLETED,
    subscribed_only: bool = False,
) -> None:
    """Enqueue an event for every webhook, or for those that subscribe to it.

    There is one row for each event, session and webhook. All events of a scope are written together.
    """
    body = {"event": event.value, "session": str(session.pk), "task": str(session.task_id), **data}
    before_commit(_write_together, _Event(event, str(session.pk), body, subscribed_only))


@dataclass(frozen=True)
class _Event:
    """An event for webhooks. `subscribed_only`: only for those that subscribe to such events."""

    event: TaskEvent
    session: str
    body: dict[str, Any]
    subscribed_only: bool

    def is_for(self, hook: Webhook) -> bool:
        return not self.subscribed_only or not hook.events or self.event.value in hook.events


def _write_together(events: list[_Event]) -> None:
    hooks = list(Webhook.objects.filter(enabled=True))
    rows = [
        Outbox(
            channel=Channel.WEBHOOK,
            webhook=hook,
            event=event.event,
            key=f"{event.event.value}:{event.session}:{hook.pk}",
            body=event.body,
        )
        for event in events
        for hook in hooks
        if event.is_for(hook)
    ]
    if rows:
        enqueue_rows(rows)


def enqueue_rows(rows: Sequence[Outbox]) -> None:
    """Write these rows and enqueue each. Idempotent by a row's key."""
    Outbox.objects.bulk_create(rows, ignore_conflicts=True)
    # Read back by key: with ignored conflicts, `bulk_create` does not say which rows were inserted.
    waiting = Outbox.objects.filter(key__in=[row.key for row in rows], state=OutboxState.WAITING)
    for pk in waiting.values_list("pk", flat=True):
        enqueue(Kind.OUTBOX_DELIVERY, scope_id=pk, message_id=f"{Kind.OUTBOX_DELIVERY}:{pk}")


def waiting_row(row_id: UUID) -> Outbox | None:
    """The row, if it is not settled."""
    rows = Outbox.objects.select_related("webhook", "user", "notice")
    row: Outbox | None = rows.filter(pk=row_id, state=OutboxState.WAITING).first()
    return row


def mark_sent(row: Outbox) -> None:
    _settle(row, state=OutboxState.SENT, sent_at=Now(), error_code="")


def mark_failed(row: Outbox, code: str, *, permanent: bool = False) -> int | None:
    """Record a failed attempt. Returns the seconds until the next one, or None when the row is given up."""
    attempts = row.attempts + 1
    if permanent or attempts >= MOST_ATTEMPTS:
        _settle(row, state=OutboxState.GIVEN_UP, error_code=code[:60])
        return None
    Outbox.objects.filter(pk=row.pk, state=OutboxState.WAITING).update(error_code=code[:60], attempts=attempts)
    # 30 seconds after the first failure, doubled each time, an hour at most.
    return min(15 << attempts, _MOST_SECONDS)


def _settle(row: Outbox, **fields: Any) -> None:
    attempts = row.attempts + 1
    waiting = Outbox.objects.filter(pk=row.pk, state=OutboxState.WAITING)
    if not waiting.update(attempts=attempts, **fields):
        return
    data = {"channel": row.channel, "state": fields["state"].value, "attempts": attempts}
    record(AuditEvent.OUTBOX_SENT, subject=f"outbox:{row.pk}", data=data)
    if fields["state"] == OutboxState.GIVEN_UP and row.channel == Channel.WEBHOOK:
        set_aside(SetAside.WEBHOOK, "system")
