"""The rows of a discovery: claimed, and what came of it. Inside the caller's tenant scope.

Always holds: nobody is asked for a yes before the skill has said how it would sign in, where it can say so; what was
found is part of what the yes binds.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.db.models import QuerySet

from apps.connections import leases
from apps.connections.enums import ConnectionStatus
from apps.connections.locks import lock_connection
from apps.connections.models import Connection
from apps.connections.schemas import ConnectionFailure, Discovery
from apps.connections.services.moving import move
from apps.connections.services.owing import DISCOVERED, FAILED, owe

LEASE = timedelta(minutes=3)


def claim(connection_id: UUID) -> UUID | None:
    """For this process alone; None when somebody else was first."""
    return leases.claim(_outstanding().filter(pk=connection_id), time=LEASE)


def outstanding() -> list[UUID]:
    """What no process sees to: for a sweep."""
    return list(_outstanding().values_list("pk", flat=True))


def found(connection_id: UUID, lease: UUID, said: Discovery) -> None:
    """In the transaction that settles the guarded call; the card is owed with it."""
    row = _held(connection_id, lease)
    if row is None:
        return
    row.auth_strategy, row.provider = said.auth_strategy.value, said.provider
    row.discovering = False
    move(row, ConnectionStatus.PROPOSED, "auth_strategy", "provider", *_LET_GO)
    owe(DISCOVERED, row.pk, message_id=f"discovered:{row.pk}:{lease}")


def failed(connection_id: UUID, lease: UUID, failure: ConnectionFailure | None) -> None:
    """The person who asked learns what is in the way, and what they can do."""
    row = _held(connection_id, lease)
    if row is None:
        return
    row.failure = (failure or ConnectionFailure()).model_dump(mode="json")
    row.discovering = False
    move(row, ConnectionStatus.FAILED, "failure", *_LET_GO, reason="discovery_failed")
    owe(FAILED, row.pk, message_id=f"undiscovered:{row.pk}:{lease}")


_LET_GO = ("discovering", "leased_by", "leased_until")


def _held(connection_id: UUID, lease: UUID) -> Connection | None:
    row = lock_connection(connection_id)
    if row.leased_by != lease or not row.discovering or row.status != ConnectionStatus.PROPOSED:
        return None
    row.leased_by, row.leased_until = None, None
    return row


def _outstanding() -> QuerySet[Connection]:
    proposed: QuerySet[Connection] = Connection.objects.filter(discovering=True, status=ConnectionStatus.PROPOSED)
    return proposed.filter(leases.free())
