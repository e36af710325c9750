"""Enqueue events for the trusted processes, which alone may open cards; in order for each connection."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from apps.bus import services as bus
from apps.bus.enums import Kind, Queue, Sender
from apps.bus.models import QueueMessage
from kernel.taint import Taint

DISCOVERED, FAILED, ENDS_SOON, WIDEN = "discovered", "failed", "ends_soon", "widen"


def enqueue(event: str, connection_id: UUID, *, message_id: str, permissions: Sequence[str] = ()) -> None:
    """Enqueue one event. Idempotent by `message_id`."""
    bus.send_message(
        Queue.TRUSTED,
        kind=Kind.CONNECTION_OWED,
        scope_id=f"connection:{connection_id}",
        sender=Sender.RUNTIME,
        message_id=message_id,
        payload={"event": event, "subject": str(connection_id), "permissions": list(permissions)},
        taint=Taint.AUTH,
    )


def was_enqueued(message_id: str) -> bool:
    return bool(QueueMessage.objects.filter(queue=Queue.TRUSTED, message_id=message_id).exists())
