"""What webhooks are posted, again and as a test. The rows and their delivery are `apps.autonomy`'s outbox."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID, uuid4

from django.db.models import Max, Min

from apps.autonomy.models import Outbox, Webhook
from apps.autonomy.services.outbox import enqueue_rows, webhook_row
from apps.events import queries
from apps.events.models import Event
from apps.tenants.enums import Role
from apps.tenants.models import User
from apps.tenants.queries import require_role
from kernel.errors import NotFound

TEST = "webhook.test"
MOST_REPLAYED = 1000


def content_of(row: Outbox) -> dict[str, object] | None:
    """What is posted for the row: the event as a stream sends it; None when it is no longer kept."""
    if row.event == TEST:
        return {
            "id": f"evt_{row.pk.hex}",
            "type": TEST,
            "version": 1,
            "timestamp": row.created_at.isoformat(),
            "data": {"webhook": str(row.webhook_id)},
        }
    if "seq" not in row.body:  # it waited while webhooks became events
        return {"id": f"evt_{row.pk.hex}", **row.body}
    events = list(Event.objects.filter(seq=row.body["seq"]))
    return queries.rendered(events)[0] if events else None


def send_test(webhook_id: UUID, *, user: User) -> Outbox:
    """Post a test event to the webhook, subscribed to or not. Owners only. Raises `NotFound` for another's."""
    require_role(user, (Role.OWNER,))
    row = webhook_row(_webhook(webhook_id), TEST, f"test:{uuid4()}", {})
    enqueue_rows([row])
    return row


def replay(webhook_id: UUID, *, after: int, until: int, user: User) -> int:
    """Post the events from after `after` to `until` once more, with the same ids, at most `MOST_REPLAYED`; returns how
    many. Owners only. Raises `NotFound` for another tenant's webhook."""
    require_role(user, (Role.OWNER,))
    hook, once = _webhook(webhook_id), uuid4()
    events = Event.objects.filter(seq__gt=after, seq__lte=until)
    events = events.filter(type__in=hook.events) if hook.events else events
    rows = [
        webhook_row(hook, event.type, f"replay:{once}:{event.seq}", {"seq": event.seq})
        for event in events.order_by("seq")[:MOST_REPLAYED]
    ]
    if rows:
        enqueue_rows(rows)
    return len(rows)


def replay_since(webhook_id: UUID, since: datetime, *, user: User) -> int:
    """As `replay`, for the events from `since` until now."""
    newer = Event.objects.filter(created_at__gte=since).aggregate(first=Min("seq"), last=Max("seq"))
    after, until = (newer["first"] or 1) - 1, newer["last"] or 0
    return replay(webhook_id, after=after, until=until, user=user)


def _webhook(webhook_id: UUID) -> Webhook:
    hook: Webhook | None = Webhook.objects.filter(pk=webhook_id).first()
    if hook is None:
        raise NotFound()
    return hook
