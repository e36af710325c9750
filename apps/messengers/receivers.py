"""Enqueue a conversation's new entries for its channels; delete old messages and forgotten visitors' addresses."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta
from uuid import UUID

from apps.approvals.models import Card
from apps.approvals.signals import card_changed, question_changed
from apps.bus import retention
from apps.messengers.cards import notices
from apps.messengers.delivery import enqueue_entries
from apps.messengers.following import offered
from apps.messengers.models import ChannelMessage, ChannelThread
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.sessions.signals import conversations_forgotten, entries_appended
from apps.visitors.offers import register_offers
from kernel.clock import now

KEPT = timedelta(days=90)
_AT_ONCE = 1000


@entries_appended.connect
def _entries_appended(session: ChatSession, entries: Sequence[ChronicleEntry]) -> None:
    if session.channel:
        enqueue_entries(session, entries)


@card_changed.connect
def _card_changed(card: Card) -> None:
    notices.enqueue_messages(card.pk)


@question_changed.connect
def _question_changed(card_id: UUID) -> None:
    notices.enqueue_messages(card_id)


@conversations_forgotten.connect
def _forget(session_ids: Collection[UUID]) -> None:
    """A further message from the same address begins a new conversation."""
    ChannelThread.objects.filter(session_id__in=session_ids).delete()


def delete_old_messages() -> bool:
    """Delete records of messages that ended long ago; True when more are left. A provider repeats a message for days at
    most, so that none is taken in twice."""
    old = ChannelMessage.objects.filter(created_at__lt=now() - KEPT).values_list("pk", flat=True)[:_AT_ONCE]
    deleted, _ = ChannelMessage.objects.filter(pk__in=list(old)).delete()
    return deleted >= _AT_ONCE


retention.register(delete_old_messages)
register_offers(offered)
