"""Record the result of a discovery. Inside the caller's tenant scope.

A person is asked for an approval only after the skill has said how it would sign in, where it can say so; what was
discovered is part of what the approval binds.
"""

from __future__ import annotations

from uuid import UUID

from apps.bus.queries import lease_held
from apps.bus.schemas import LeaseRef
from apps.connections.enums import ConnectionStatus
from apps.connections.locks import lock_connection
from apps.connections.models import Connection
from apps.connections.schemas import ConnectionFailure, Discovery
from apps.connections.services.outbox import DISCOVERED, FAILED, enqueue
from apps.connections.services.status import change_status


def is_pending(connection_id: UUID) -> bool:
    """True while the connection is proposed and its discovery has not ended."""
    rows = Connection.objects.filter(pk=connection_id, discovering=True, status=ConnectionStatus.PROPOSED)
    return bool(rows.exists())


def record_result(connection_id: UUID, lease: LeaseRef, result: Discovery) -> None:
    """Store how the skill would sign in, and enqueue the card; in the transaction that settles the guarded call."""
    row = _lock_pending(connection_id)
    # A worker that was given up may still answer when the lease is another's.
    if row is None or not lease_held(lease).value:
        return
    row.auth_strategy, row.provider = result.auth_strategy.value, result.provider
    row.discovering = False
    change_status(row, ConnectionStatus.PROPOSED, "auth_strategy", "provider", "discovering")
    enqueue(DISCOVERED, row.pk, message_id=f"discovered:{row.pk}:{lease.message_pk}")


def record_failure(connection_id: UUID, message_pk: UUID, failure: ConnectionFailure | None) -> None:
    """Mark the connection as failed, which opens a card for the requester. `message_pk`: the discovery's message."""
    row = _lock_pending(connection_id)
    if row is None:
        return
    row.failure = (failure or ConnectionFailure()).model_dump(mode="json")
    row.discovering = False
    change_status(row, ConnectionStatus.FAILED, "failure", "discovering", reason="discovery_failed")
    enqueue(FAILED, row.pk, message_id=f"undiscovered:{row.pk}:{message_pk}")


def _lock_pending(connection_id: UUID) -> Connection | None:
    row = lock_connection(connection_id)
    return row if row.discovering and row.status == ConnectionStatus.PROPOSED else None
