"""Find the presences of this process that missed a frame, and send them what they missed from the rows.

Live frames travel over Redis and may be lost; rows are not. Every few seconds one query per tenant says how far each
conversation has come, and a presence that was sent less reads the rows. A socket enters when it is authenticated and
leaves when it ends.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Protocol
from uuid import UUID

from apps.access.tokens import Visitor
from apps.sessions import queries
from kernel.tenancy import in_scope


class Presence(Protocol):
    """A live socket of a visitor and how far it has been told."""

    visitor: Visitor | None
    last_seq: int

    async def catch_up(self) -> None: ...


# Of this process alone: a socket lives in one process, and every process sweeps its own.
_present: set[Presence] = set()


def entered(presence: Presence) -> None:
    _present.add(presence)


def left(presence: Presence) -> None:
    _present.discard(presence)


async def sweep() -> None:
    """Bring every presence that has missed something up to date. Raises when the database is away."""
    for tenant_id, here in _by_tenant().items():
        reached = await in_scope(tenant_id, queries.seqs_of, here.keys())
        for session_id, seq in reached.items():
            for presence in here[session_id]:
                if seq > presence.last_seq:
                    await presence.catch_up()


def _by_tenant() -> dict[UUID, dict[UUID, list[Presence]]]:
    found: dict[UUID, dict[UUID, list[Presence]]] = defaultdict(lambda: defaultdict(list))
    for presence in _present:
        if presence.visitor is not None:
            found[presence.visitor.tenant_id][presence.visitor.session_id].append(presence)
    return found
