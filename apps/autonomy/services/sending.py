"""What is sent outside, and how does it arrive once? Written with what it tells, sent after the commit by the relay.

A row is claimed for longer than one claim's letters may take, and tried again later until it arrives or the last try
failed; once it is sent nobody sends it again. A receiver that answers and dies before we hear it may be told twice: the
row's id says it is the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import F
from django.db.models.functions import Now

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.autonomy.enums import Channel, OutboxState, TaskEvent
from apps.autonomy.models import AutonomousSession, Notification, Outbox, Webhook
from apps.bus.enums import SetAside
from apps.bus.signals import set_aside
from kernel.tenancy import gather_for_commit

MOST_ATTEMPTS = 8
# A claim lasts longer than its letters one after the other (`relay`: ten seconds each).
_CLAIM_SECONDS, _MOST_SECONDS, _BATCH = 300, 3600, 20


def owe_email(session: AutonomousSession, user_id: UUID, counts: Mapping[str, int]) -> None:
    """A letter that says how many and where to look, no word of what was found."""
    body = {"task": session.task.name, "session": str(session.pk), "counts": dict(counts)}
    row = Outbox(
        channel=Channel.EMAIL,
        user_id=user_id,
        event=TaskEvent.COMPLETED,
        key=f"email:{session.origin}:{user_id}",
        body=body,
    )
    Outbox.objects.bulk_create([row], ignore_conflicts=True)


def owe_letter(notice: Notification) -> None:
    """A letter about a notice of a bad end, once for each end: to its member, or to the owners. Whether they want one,
    and when, a web process asks when it sends it."""
    row = Outbox(
        channel=Channel.EMAIL,
        user_id=notice.user_id,
        notice_id=notice.pk,
        event=TaskEvent.FAILED,
        key=f"notice:{notice.pk}:{notice.session_id}:{notice.reason}"[:200],
    )
    Outbox.objects.bulk_create([row], ignore_conflicts=True)


def owe_webhooks(
    session: AutonomousSession,
    data: Mapping[str, Any],
    *,
    event: TaskEvent = TaskEvent.COMPLETED,
    subscribed_only: bool = False,
) -> None:
    """To every webhook of the company, or to those that asked for such events. One an event, session and webhook; all
    that a scope owes is written together."""
    body = {"event": event.value, "session": str(session.pk), "task": str(session.task_id), **data}
    gather_for_commit(_owe_together, _News(event, str(session.pk), body, subscribed_only))


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
        Outbox.objects.bulk_create(rows, ignore_conflicts=True)


def owing_tenants() -> list[UUID]:
    """Outside of any scope: whose letters are due, the oldest first. One question, however many companies there are."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT autonomy_owing_tenants()")
        return [tenant_id for (tenant_id,) in cursor.fetchall()]


def claim() -> list[Outbox]:
    """Rows that are due, ours for a while. Inside a scope; whoever else looks passes them by."""
    due = Outbox.objects.filter(state=OutboxState.WAITING, due_at__lte=Now()).order_by("due_at")
    rows = list(
        due.select_for_update(of=("self",), skip_locked=True, no_key=True).select_related("webhook", "user")[:_BATCH]
    )
    mine = Outbox.objects.filter(pk__in=[row.pk for row in rows])
    mine.update(attempts=F("attempts") + 1, due_at=Now() + timedelta(seconds=_CLAIM_SECONDS))
    for row in rows:
        row.attempts += 1
    return rows


def sent(row: Outbox) -> bool:
    return _settle(row, state=OutboxState.SENT, sent_at=Now(), error_code="")


def failed(row: Outbox, code: str, *, for_good: bool = False) -> bool:
    """Again later, or given up."""
    if for_good or row.attempts >= MOST_ATTEMPTS:
        return _settle(row, state=OutboxState.GIVEN_UP, error_code=code[:60])
    wait = timedelta(seconds=min(15 * 2**row.attempts, _MOST_SECONDS))
    waiting = Outbox.objects.filter(pk=row.pk, state=OutboxState.WAITING, attempts=row.attempts)
    return bool(waiting.update(error_code=code[:60], due_at=Now() + wait))


def later(row: Outbox, until: datetime) -> None:
    """Not yet, which is no failure."""
    waiting = Outbox.objects.filter(pk=row.pk, state=OutboxState.WAITING, attempts=row.attempts)
    waiting.update(due_at=until, attempts=row.attempts - 1)


def _settle(row: Outbox, **fields: Any) -> bool:
    mine = Outbox.objects.filter(pk=row.pk, state=OutboxState.WAITING, attempts=row.attempts)
    if not mine.update(**fields):
        return False
    data = {"channel": row.channel, "state": fields["state"].value, "attempts": row.attempts}
    record(AuditEvent.OUTBOX_SENT, subject=f"outbox:{row.pk}", data=data)
    if fields["state"] == OutboxState.GIVEN_UP and row.channel == Channel.WEBHOOK:
        set_aside(SetAside.WEBHOOK, "system")
    return True
