"""Append events in the transaction in which something happens, with their deliveries to webhooks, and wake the streams
after its commit."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.db import connection
from django.db.models.functions import Now

from apps.autonomy.models import Webhook
from apps.autonomy.services.outbox import enqueue_rows, webhook_row
from apps.events.catalogue import CATALOGUE
from apps.events.models import Event, EventHead
from kernel.live import poke_on_commit
from kernel.tenancy import before_commit, current_tenant_id

_BATCH = 1000
# One statement: a conversation's chatbot is found here, test conversations and those in which nothing was said yet are
# left out, and the numbers come from the head, whose lock is held until the commit.
_APPEND = """
    WITH item AS (
        SELECT * FROM jsonb_to_recordset(%(items)s::jsonb)
            AS item(id uuid, place int, type text, deployment uuid, session uuid, data jsonb)
    ), kept AS (
        SELECT item.id, item.type, coalesce(item.deployment, chat.deployment_id) AS deployment, item.session, item.data,
               row_number() OVER (ORDER BY item.place) AS place, count(*) OVER () AS total
        FROM item LEFT JOIN silas_sessions_chatsession chat
            ON chat.id = item.session AND chat.tenant_id = %(tenant)s
        WHERE chat.is_test IS NOT TRUE AND (item.type <> 'conversation.updated' OR chat.seq > 0)
    ), head AS (
        INSERT INTO events_eventhead (id, tenant_id, last_seq)
        SELECT gen_random_uuid(), %(tenant)s, max(total) FROM kept HAVING count(*) > 0
        ON CONFLICT (tenant_id) DO UPDATE SET last_seq = events_eventhead.last_seq + excluded.last_seq
        RETURNING last_seq
    )
    INSERT INTO events_event (id, tenant_id, seq, type, deployment_id, session_id, data)
    SELECT kept.id, %(tenant)s, head.last_seq - kept.total + kept.place, kept.type, kept.deployment, kept.session,
           kept.data
    FROM kept, head
    RETURNING id, type, seq,
        EXISTS (SELECT FROM autonomy_webhook hook WHERE hook.tenant_id = %(tenant)s AND hook.enabled) AS has_webhooks
"""


@dataclass(frozen=True)
class _Item:
    type: str
    deployment: UUID | None
    session: UUID | None
    data: dict[str, Any]
    id: UUID = field(default_factory=uuid4, compare=False)


def group_of(tenant_id: UUID) -> str:
    """The channel-layer group of the company's streams."""
    return f"events.{tenant_id.hex}"


def emit(
    event: str,
    *,
    session_id: UUID | None = None,
    deployment_id: UUID | None = None,
    **data: str | int | dict[str, object],
) -> None:
    """Append an event of the catalogue when the scope commits; equal events of one transaction are one.

    `session_id`: the conversation that it belongs to; none is appended about a test conversation. Raises `KeyError`
    for a type that is not in the catalogue.
    """
    item = _Item(CATALOGUE[event].name, deployment_id, session_id, data)
    before_commit(_append, item, numbered=True)


def _append(items: list[_Item]) -> None:
    unique = list({(item.type, item.session, json.dumps(item.data, sort_keys=True)): item for item in items}.values())
    created = {item.session for item in unique if item.type == "conversation.created"}
    rows = [
        asdict(item) | {"place": place}
        for place, item in enumerate(unique)
        if item.type != "conversation.updated" or item.session not in created
    ]
    with connection.cursor() as cursor:
        cursor.execute(_APPEND, {"items": json.dumps(rows, default=str), "tenant": current_tenant_id()})
        appended: list[tuple[UUID, str, int, bool]] = cursor.fetchall()
    if appended and appended[0][3]:
        hooks = list(Webhook.objects.filter(enabled=True))
        deliveries = [
            webhook_row(hook, kind, f"event:{event_id}", {"seq": seq})
            for event_id, kind, seq, _ in appended
            for hook in hooks
            if not hook.events or kind in hook.events
        ]
        if deliveries:
            enqueue_rows(deliveries)
    poke_on_commit(group_of(current_tenant_id()), {"type": "events.appended"})


def delete_old_events() -> bool:
    """A step of retention: delete the oldest events that are past their days, at most `_BATCH`."""
    old = Event.objects.filter(created_at__lt=Now() - timedelta(days=settings.EVENTS_KEEP_DAYS))
    seqs = list(old.order_by("seq").values_list("seq", flat=True)[:_BATCH])
    if seqs:
        EventHead.objects.update(deleted_seq=seqs[-1])
        Event.objects.filter(seq__lte=seqs[-1]).delete()
    return len(seqs) == _BATCH
