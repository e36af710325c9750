"""The rows of a discovery: what came of it. Inside the caller's tenant scope.

Always holds: nobody is asked for a yes before the skill has said how it would sign in, where it can say so; what was
found is part of what the yes binds.
"""

from __future__ import annotations

from uuid import UUID

from apps.bus.queries import is_lease_held
from apps.bus.schemas import LeaseRef
from apps.connections.enums import ConnectionStatus
from apps.connections.locks import lock_connection
from apps.connections.models import Connection
from apps.connections.schemas import ConnectionFailure, Discovery
from apps.connections.services.outbox import DISCOVERED, FAILED, enqueue
from apps.connections.services.status import change_status


def is_pending(connection_id: UUID) -> bool:
    proposed = Connection.objects.filter(pk=connection_id, discovering=True, status=ConnectionStatus.PROPOSED)
    return bool(proposed.exists())


def record_result(connection_id: UUID, lease: LeaseRef, said: Discovery) -> None:
    """In the transaction that settles the guarded call; the card is owed with it."""
    row = _outstanding(connection_id)
    if row is None or not is_lease_held(lease):
        return
    row.auth_strategy, row.provider = said.auth_strategy.value, said.provider
    row.discovering = False
    change_status(row, ConnectionStatus.PROPOSED, "auth_strategy", "provider", "discovering")
    enqueue(DISCOVERED, row.pk, message_id=f"discovered:{row.pk}:{lease.message_pk}")


def record_failure(connection_id: UUID, message_pk: UUID, failure: ConnectionFailure | None) -> None:
    """The person who asked learns what is in the way, and what they can do. `message_pk`: by which it was owed."""
    row = _outstanding(connection_id)
    if row is None:
        return
    row.failure = (failure or ConnectionFailure()).model_dump(mode="json")
    row.discovering = False
    change_status(row, ConnectionStatus.FAILED, "failure", "discovering", reason="discovery_failed")
    enqueue(FAILED, row.pk, message_id=f"undiscovered:{row.pk}:{message_pk}")


def _outstanding(connection_id: UUID) -> Connection | None:
    row = lock_connection(connection_id)
    return row if row.discovering and row.status == ConnectionStatus.PROPOSED else None
