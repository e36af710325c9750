"""Keep a provider's webhook as the channel is: removed when the channel is turned off or removed, set again when it is
turned on.

Enqueued in the transaction that changes the channel, and done by the trusted worker. The provider is asked first where
its calls go, so that a channel that was added again with the same credentials keeps its own. Providers at which a
person enters the address (`Adapter.sets_webhook`) are left alone.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from apps.bus.deliveries import Delivery
from apps.bus.enums import Kind
from apps.bus.models import QueueMessage
from apps.bus.services import enqueue
from apps.messengers import ports
from apps.messengers.delivery import place_of, seal_place
from apps.messengers.models import Channel
from apps.messengers.ports import Adapter, NotSent, Place
from apps.tenants import vault
from kernel.clock import now
from kernel.tenancy import in_scope

# How long another attempt is made while the provider is away; later it is a dead letter, and the owners are told.
PATIENCE = timedelta(days=1)


def enqueue_change(row: Channel, *, sealed: bytes) -> None:
    """Call once the channel was turned on, turned off or removed, in the same transaction. `sealed`: its secrets, which
    a removed channel keeps nowhere else; they are deleted with the message's payload once they were used."""
    known = bool(row.settings.get("webhook"))
    if not ports.adapter_of(row.kind).sets_webhook or (row.enabled and not known):
        return
    payload = {"webhook": b64encode(sealed).decode() if row.removed_at else ""}
    enqueue(Kind.CHANNEL_DELIVERY, scope_id=row.pk, payload=payload, message_id=f"webhook:{uuid4()}")


async def settle(job: Delivery) -> None:
    """Handle a `CHANNEL_DELIVERY` about a webhook. Raises `NotSent` for a refusal that stays; the bus counts those."""
    channel_id = UUID(job.message.subject)
    adapter, place, is_on = await in_scope(job.tenant_id, _opened, channel_id, job.message.payload or {})
    try:
        if is_on:
            await adapter.connect(place, str(place.settings["webhook"]))
        else:
            await adapter.disconnect(place)
    except NotSent as refused:
        # Credentials that are refused cannot be used to be called, either.
        if is_on or refused.code != "unauthorized":
            await in_scope(job.tenant_id, _note, channel_id, refused.code)
            if refused.retry_after is None or now() - job.message.created_at > PATIENCE:
                raise
            await in_scope(job.tenant_id, job.defer, refused.retry_after, refused.code)
            return
    await job.commit(_end, channel_id, job.message.pk)


def _opened(channel_id: UUID, payload: Mapping[str, Any]) -> tuple[Adapter, Place, bool]:
    """The channel as it is by now, with its secrets."""
    row = Channel.objects.get(pk=channel_id)
    place = place_of(row)
    if row.removed_at and payload.get("webhook"):
        opened = vault.unseal(b64decode(payload["webhook"]), belongs_to=seal_place(row))
        place = replace(place, secrets=json.loads(opened))
    return ports.adapter_of(row.kind), place, row.enabled


def _note(channel_id: UUID, problem: str) -> None:
    Channel.objects.filter(pk=channel_id).update(problem=problem, problem_at=now() if problem else None)


def _end(channel_id: UUID, message_id: UUID) -> None:
    _note(channel_id, "")
    # The message held the secrets of a removed channel, which are kept nowhere else.
    QueueMessage.objects.filter(pk=message_id).update(payload=None)
