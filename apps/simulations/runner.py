"""Serve the queue of simulations in this process, at low priority.

Web processes look every few seconds (`silas_platform.background`); `manage.py simulate` looks until its run has ended.
"""

from __future__ import annotations

import asyncio
import os
import socket
from uuid import UUID

from apps.bus import services as bus
from apps.bus.deliveries import deliver, lease_next
from apps.bus.enums import Queue
from apps.bus.queries import DueScope, due_scopes
from apps.bus.schemas import Lease
from kernel.tenancy import in_thread, tenant_scope
from kernel.tenancy.threads import use_low_priority_pool

LEASE_SECONDS = 120.0
CONSUMER = f"simulation:{socket.gethostname()[:40]}:{os.getpid()}"


async def serve_due(*, tenant_id: UUID | None = None, at_once: int = 1) -> int:
    """Deliver what is due, of one tenant or of all, until nothing is; returns how many messages were delivered.

    `at_once` conversations go on in this process: more than one gains where models outside are waited for.
    """
    use_low_priority_pool()
    limit, delivered = asyncio.Semaphore(at_once), 0

    async def serve(scope: DueScope) -> bool:
        async with limit:
            lease = await in_thread(_take, scope)
            if lease is not None:
                await deliver(scope.tenant_id, lease, seconds=LEASE_SECONDS)
        return lease is not None

    while True:
        due = [
            scope for scope in await in_thread(due_scopes, [Queue.SIMULATION]) if tenant_id in (None, scope.tenant_id)
        ]
        served = sum(await asyncio.gather(*(serve(scope) for scope in due)))
        delivered += served
        if not served:
            return delivered


def _take(scope: DueScope) -> Lease | None:
    with tenant_scope(scope.tenant_id):
        if scope.exhausted:
            bus.expire_leases()
        return lease_next(scope.queue, scope_id=scope.scope_id, consumer=CONSUMER, seconds=LEASE_SECONDS)
