"""Register the handlers of this room's bus messages."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings

from apps.bus.deliveries import Delivery
from apps.bus.enums import Kind
from apps.bus.models import QueueMessage
from apps.bus.registry import on_dead_letter, register_job
from apps.bus.threads import is_stopping
from apps.messengers import delivery, ports, webhooks
from apps.messengers.cards import notices
from apps.messengers.delivery import place_of
from apps.messengers.email import intake
from apps.messengers.enums import MessageState
from apps.messengers.inbound import receive, unheld
from apps.messengers.models import Channel, ChannelMessage
from apps.messengers.ports import Adapter, Inbound, NotSent, Place
from kernel.clock import now
from kernel.errors import SilasError
from kernel.tenancy import in_scope, in_thread

# Deliveries wait for other services, so a worker runs several at once.
CONCURRENCY = 8
# How long a channel is watched at least before another one that only gets looked into takes its place.
TURN_SECONDS = 600.0
_watched: set[UUID] = set()


async def receive_held(job: Delivery) -> None:
    """Fetch the files of a held message, and take it in. Handler of `channel_inbound`."""
    if (job.message.payload or {}).get("mail"):
        await intake.apply(job)
        return
    row_id = UUID(job.message.subject)
    found = await in_scope(job.tenant_id, _held, row_id)
    if found is None:
        return
    channel_id, adapter, place, message = found
    try:
        whole = await adapter.fetch(place, message)
    except NotSent as refusal:
        if refusal.retry_after is not None:
            await in_scope(job.tenant_id, job.defer, refusal.retry_after, refusal.code)
            return
        whole = message
    try:
        await in_thread(receive, job.tenant_id, channel_id, whole)
    except SilasError as refusal:
        await in_scope(job.tenant_id, job.defer, float(refusal.extra.get("retry_after", 5)), refusal.code)


def _held(row_id: UUID) -> tuple[UUID, Adapter, Place, Inbound] | None:
    row = ChannelMessage.objects.select_related("channel").filter(pk=row_id, state=MessageState.WAITING).first()
    if row is None or row.held is None:
        return None
    return row.channel_id, ports.adapter_of(row.channel.kind), place_of(row.channel), unheld(row.held)


async def deliver(job: Delivery) -> None:
    """Handler of `channel_delivery`: an entry or a notice of a thread, or what the provider is told of a channel."""
    if "webhook" in (job.message.payload or {}):
        await webhooks.settle(job)
    else:
        await delivery.send(job)


async def poll(job: Delivery) -> None:
    """Look for new messages where the provider has to be asked, and watch for them as long as this process has room.
    Handler of `channel_poll`, which recurs."""
    channel_id = UUID(job.message.subject)
    found = await in_scope(job.tenant_id, _polled, channel_id)
    if found is None:
        await job.reschedule(_no_more)
        return
    adapter, place, kept, version = found
    watches, turn_ends = len(_watched) < settings.CHANNEL_WATCHES, time.monotonic() + TURN_SECONDS

    async def go_on() -> bool:
        if not watches or is_stopping():
            return False
        if len(_watched) >= settings.CHANNEL_WATCHES and time.monotonic() >= turn_ends:
            return False
        return await in_scope(job.tenant_id, _note_look, channel_id, version, kept)

    refusal: NotSent | None = None
    if watches:
        _watched.add(channel_id)
    try:
        await adapter.poll(job.tenant_id, channel_id, place, kept, go_on)
    except NotSent as refused:
        refusal = refused
    finally:
        if watches:
            _watched.discard(channel_id)
    await job.reschedule(_note_poll, channel_id, kept, refusal)


def _no_more() -> None:
    return None


def _polled(channel_id: UUID) -> tuple[Adapter, Place, dict[str, object], int] | None:
    row = Channel.objects.filter(pk=channel_id, enabled=True).first()
    if row is None or not ports.adapter_of(row.kind).polls(row.settings):
        return None
    return ports.adapter_of(row.kind), place_of(row), dict(row.kept), row.version


def _note_look(channel_id: UUID, version: int, kept: dict[str, object]) -> bool:
    """Store what a watch keeps. False for a channel that was changed or turned off since the watch began."""
    # `version`: a watch that began with other settings must not go on with them.
    row = Channel.objects.select_for_update(no_key=True).filter(pk=channel_id, enabled=True, version=version).first()
    if row is None:
        return False
    if row.kept != kept or row.problem.startswith("imap_"):
        _keep(row, kept, None)
    return True


def _note_poll(channel_id: UUID, kept: dict[str, object], refusal: NotSent | None) -> datetime | None:
    """When to look again; None for a channel that was turned off meanwhile."""
    row = Channel.objects.select_for_update(no_key=True).filter(pk=channel_id, enabled=True).first()
    if row is None:
        return None
    _keep(row, kept, refusal)
    return now() + timedelta(seconds=max(settings.CHANNEL_POLL_SECONDS, refusal.retry_after or 300 if refusal else 0))


def _keep(row: Channel, kept: dict[str, object], refusal: NotSent | None) -> None:
    row.kept = kept
    if refusal:
        row.problem, row.problem_at = refusal.code, now()
    elif row.problem.startswith("imap_"):
        row.problem, row.problem_at = "", None
    row.save(update_fields=["kept", "problem", "problem_at"])


def _lose(message: QueueMessage) -> bool:
    """Say in the channel's list that a message could not be taken in; no other alert."""
    if (message.payload or {}).get("mail"):
        return intake.give_up(UUID(message.subject))
    rows = ChannelMessage.objects.filter(pk=UUID(message.subject), state=MessageState.WAITING)
    rows.update(state=MessageState.FAILED, problem="not_taken_in", held=None, changed_at=now())
    return False


register_job(Kind.CARD_NOTICE, notices.deliver, recurring=True, max_concurrency=CONCURRENCY)
register_job(Kind.CHANNEL_INBOUND, receive_held, max_concurrency=CONCURRENCY)
register_job(Kind.CHANNEL_DELIVERY, deliver, max_concurrency=CONCURRENCY)
register_job(Kind.CHANNEL_POLL, poll, recurring=True, max_concurrency=settings.CHANNEL_WATCHES + CONCURRENCY)
register_job(Kind.MAIL_READ, intake.read_mail, max_concurrency=2)
on_dead_letter(intake.unread, Kind.MAIL_READ)
on_dead_letter(_lose, Kind.CHANNEL_INBOUND)
on_dead_letter(delivery.give_up, Kind.CHANNEL_DELIVERY)
