"""Reads of channels, inside the tenant's scope unless said otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db.models import Count, Max, Q

from apps.messengers.enums import Direction, MessageState
from apps.messengers.models import Channel, ChannelMessage
from kernel.clock import now
from kernel.errors import NotFound
from kernel.tenancy import lookup_scope

_SHOWN_PROBLEMS = 20


@dataclass(frozen=True)
class Health:
    """What came and went in the last hour, and the newest problems of the last day, newest first."""

    received: int
    sent: int
    failed: int
    last_received: object
    last_sent: object
    problems: list[ChannelMessage]


def channel_by_public_id(public_id: str) -> Channel | None:
    """The channel that a provider calls; None for an unknown or removed one. Opens its own lookup scope."""
    if not public_id:
        return None
    with lookup_scope(public_id):
        row: Channel | None = Channel.objects.filter(public_id=public_id, removed_at=None).first()
        return row


def channels() -> list[Channel]:
    return list(Channel.objects.select_related("deployment").filter(removed_at=None).order_by("created_at"))


def channel(channel_id: UUID) -> Channel:
    """Raises `NotFound`, also for a removed one."""
    row: Channel | None = Channel.objects.select_related("deployment").filter(pk=channel_id, removed_at=None).first()
    if row is None:
        raise NotFound()
    return row


def lock_channel(channel_id: UUID) -> Channel:
    """Raises `NotFound`, also for a removed one."""
    rows = Channel.objects.select_for_update(of=("self",), no_key=True).select_related("deployment")
    row: Channel | None = rows.filter(pk=channel_id, removed_at=None).first()
    if row is None:
        raise NotFound()
    return row


def health(channel_id: UUID) -> Health:
    messages = ChannelMessage.objects.filter(channel_id=channel_id)
    hour = Q(changed_at__gte=now() - timedelta(hours=1))
    came, went = Q(direction=Direction.IN), Q(direction=Direction.OUT)
    failed = Q(state=MessageState.FAILED)
    counts: Mapping[str, object] = messages.aggregate(
        received=Count("pk", filter=hour & came),
        sent=Count("pk", filter=hour & went & ~failed),
        failed=Count("pk", filter=hour & failed),
        last_received=Max("created_at", filter=came),
        last_sent=Max("changed_at", filter=went & ~failed),
    )
    recent = messages.exclude(problem="").filter(changed_at__gte=now() - timedelta(days=1))
    return Health(**counts, problems=list(recent.order_by("-changed_at")[:_SHOWN_PROBLEMS]))  # type: ignore[arg-type]  # counts and times
