"""What do workers leave to a web process? To put a connection that is wanted, one that is broken, one that ends soon,
and a wish for more access before people: only here a card can be opened. The consumer of `connection_owed` on the proxy
queue; safe to run twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from apps.bus.deliveries import Delivery
from apps.connections.models import Connection
from apps.connections.services import recovery, requests


async def carry_out(delivery: Delivery) -> None:
    payload = delivery.message.payload or {}
    await delivery.commit(attend, payload["event"], UUID(payload["subject"]), payload.get("permissions") or [])


def attend(event: str, connection_id: UUID, permissions: Sequence[str]) -> None:
    row = Connection.objects.filter(pk=connection_id).first()
    if row is None:
        return
    match event:
        case "discovered":
            requests.open_connection_card(row)
        case "failed":
            recovery.open_failure_card(row)
        case "ends_soon":
            recovery.open_reconnect_card(row)
        case "widen":
            requests.open_escalation_card(row, permissions, "A tool that somebody wants to run needs it.")
