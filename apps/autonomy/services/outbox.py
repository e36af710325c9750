"""Rows that are sent outside, and how each arrives once: written with what it tells, sent by `handlers.handle_outbox`.

Each row enqueues one bus message, which holds when it is due and who sends it. It is retried until it arrives or the
last attempt fails, and never sent after it arrived. A receiver whose answer is lost may get a delivery twice: the row's
id tells that it is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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

# How often a row is tried, and the longest wait between: an email for some hours, a webhook for about a day.
MOST_ATTEMPTS = 8
_MOST_SECONDS = 3600
WEBHOOK_ATTEMPTS = 13
_MOST_WEBHOOK_SECONDS = 6 * 3600

Content = Callable[[Outbox], Mapping[str, object] | None]
_content: list[Content] = []


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


def webhook_row(hook: Webhook, event: str, key: str, body: dict[str, object]) -> Outbox:
    """A delivery of an event to this webhook, once for each `key`; `body` says which event (`register_content`)."""
    return Outbox(channel=Channel.WEBHOOK, webhook=hook, event=event, key=f"{key}:{hook.pk}", body=body)


def register_content(content: Content) -> None:
    """Let `content` say what is posted for a row: called in a scope, None when the event is no longer kept."""
    _content.append(content)


def content_of(row: Outbox) -> Mapping[str, object] | None:
    return _content[0](row)


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
    is_webhook = row.channel == Channel.WEBHOOK
    if permanent or attempts >= (WEBHOOK_ATTEMPTS if is_webhook else MOST_ATTEMPTS):
        _settle(row, state=OutboxState.GIVEN_UP, error_code=code[:60])
        return None
    Outbox.objects.filter(pk=row.pk, state=OutboxState.WAITING).update(error_code=code[:60], attempts=attempts)
    # 30 seconds after the first failure, doubled each time.
    return min(15 << attempts, _MOST_WEBHOOK_SECONDS if is_webhook else _MOST_SECONDS)


def _settle(row: Outbox, **fields: Any) -> None:
    attempts = row.attempts + 1
    waiting = Outbox.objects.filter(pk=row.pk, state=OutboxState.WAITING)
    if not waiting.update(attempts=attempts, **fields):
        return
    data = {"channel": row.channel, "state": fields["state"].value, "attempts": attempts}
    record(AuditEvent.OUTBOX_SENT, subject=f"outbox:{row.pk}", data=data)
    if fields["state"] == OutboxState.GIVEN_UP and row.channel == Channel.WEBHOOK:
        set_aside(SetAside.WEBHOOK, "system")
