"""Row locks of this room. Order: the set-up, then its connection."""

from __future__ import annotations

from uuid import UUID

from apps.connections.models import Connection, SetupRun
from kernel.errors import NotFound


def lock_connection(connection_id: UUID) -> Connection:
    """Raises `NotFound` for an unknown or foreign connection."""
    row: Connection | None = Connection.objects.select_for_update(no_key=True).filter(pk=connection_id).first()
    if row is None:
        raise NotFound()
    return row


def lock_setup(setup_id: UUID) -> SetupRun:
    """Raises `NotFound` for an unknown or foreign set-up."""
    row: SetupRun | None = SetupRun.objects.select_for_update(no_key=True).filter(pk=setup_id).first()
    if row is None:
        raise NotFound()
    return row
