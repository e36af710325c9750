"""Rows that are sent outside, and how each arrives once: written with what it tells, sent by `handlers.handle_outbox`.

Each row owes one message on the bus, which carries when it is due and who sends it. It is tried again until it arrives
or the last try failed; once it is sent nobody sends it again. A receiver that answers and dies before we hear it may be
told twice: the row's id says it is the same.
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
    """A letter that says how many and where to look, no word of what was found."""
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
    """A letter about a notice of a bad end, once for each end: to its member, or to the owners. Whether they want one,
    and when, is asked when it is sent."""
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
    data: Mapping[str, Any],
    *,
    event: TaskEvent = TaskEvent.COMPLETED,
    subscribed_only: bool = False,
) -> None:
    """To every webhook of the company, or to those that asked for such events. One an event, session and webhook; all
    that a scope owes is written together."""
    body = {"event": event.value, "session": str(session.pk), "task": str(session.task_id), **data}
    before_commit(_owe_together, _News(event, str(session.pk), body, subscribed_only))


@dataclass(frozen=True)
class _News:
    """`subscribed_only`: for who asked for such events."""

    event: TaskEvent
    session: str
    body: dict[str, Any]
    subscribed_only: bool

    def is_for(self, hook: Webhook) -> bool:
        return not self.subscribed_only or not hook.events or self.event.value in hook.events


def _owe_together(found: list[_News]) -> None:
    hooks = list(Webhook.objects.filter(enabled=True))
    rows = [
        Outbox(
            channel=Channel.WEBHOOK,
            webhook=hook,
            event=news.event,
            key=f"{news.event.value}:{news.session}:{hook.pk}",
            body=news.body,
        )
        for news in found
        for hook in hooks
        if news.is_for(hook)
    ]
    if rows:
        enqueue_rows(rows)


def enqueue_rows(rows: Sequence[Outbox]) -> None:
    """Write these rows and owe each; a row whose key is there already is the same, and is owed once."""
    Outbox.objects.bulk_create(rows, ignore_conflicts=True)
    owed = Outbox.objects.filter(key__in=[row.key for row in rows], state=OutboxState.WAITING)
    for pk in owed.values_list("pk", flat=True):
        enqueue(Kind.OUTBOX_DELIVERY, scope_id=pk, message_id=f"{Kind.OUTBOX_DELIVERY}:{pk}")


def waiting_row(row_id: UUID) -> Outbox | None:
    """The row, if it is still to be sent."""
    rows = Outbox.objects.select_related("webhook", "user", "notice")
    row: Outbox | None = rows.filter(pk=row_id, state=OutboxState.WAITING).first()
    return row


def mark_sent(row: Outbox) -> None:
    _settle(row, state=OutboxState.SENT, sent_at=Now(), error_code="")


def mark_failed(row: Outbox, code: str, *, permanent: bool = False) -> int | None:
    """One more try failed. Returns after how many seconds the next one is due, or None where the row is given up."""
    attempts = row.attempts + 1
    if permanent or attempts >= MOST_ATTEMPTS:
        _settle(row, state=OutboxState.GIVEN_UP, error_code=code[:60])
        return None
    Outbox.objects.filter(pk=row.pk, state=OutboxState.WAITING).update(error_code=code[:60], attempts=attempts)
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
