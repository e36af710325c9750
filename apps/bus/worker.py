"""Deliver due messages: one wake-up of a worker.

A worker queries which scopes of all tenants have due messages and serves them by turn: every tenant's first scope
before any tenant's second. It queries again when that list is a moment old, and continues after the tenant that it
served last, so that ten thousand messages of one tenant do not delay another tenant's one. Called by `tasks.drain`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from uuid import UUID

from apps.bus import deadlines, queries, services, telemetry, threads, wakeup
from apps.bus.deliveries import deliver, lease_next
from apps.bus.queries import DueScope
from apps.bus.registry import consumer_of, queues_of
from apps.bus.schemas import Lease
from apps.bus.workers import Worker
from kernel.tenancy import tenant_scope

LEASE_SECONDS = 120.0
# How long a list of due scopes is used, and how long one wake-up keeps the worker from its other tasks.
LIST_SECONDS, SHIFT_SECONDS = 0.5, 10.0

_served_last: UUID | None = None


def drain(worker: Worker, *, consumer: str, lease_seconds: float = LEASE_SECONDS) -> None:
    """Deliver messages of this kind of worker until none is due or the shift ends, which wakes another one.

    `consumer` names this process in the leases that it takes.
    """
    ends, delivered = time.monotonic() + SHIFT_SECONDS, 0
    try:
        with asyncio.Runner() as runner:
            while due := queries.due_scopes(queues_of(worker)):
                telemetry.due(worker, len(due))
                before, stale = delivered, min(ends, time.monotonic() + LIST_SECONDS)
                for scope in _in_turn(due):
                    lease = _take(scope, consumer, lease_seconds)
                    if lease is None:
                        continue
                    delivered += 1
                    if delivered == 2:
                        # With a second message there may be a third, for which another worker may be free.
                        wakeup.wake(worker)
                    handler = consumer_of(lease.message.queue, lease.message.kind)
                    if handler and handler.max_concurrency:
                        threads.start(scope.tenant_id, lease, handler, seconds=lease_seconds)
                    else:
                        deadlines.set_deadline()
                        runner.run(deliver(scope.tenant_id, lease, seconds=lease_seconds))
                    if time.monotonic() >= stale:
                        break
                if delivered == before:
                    break
                if time.monotonic() >= ends:
                    wakeup.wake(worker)
                    break
            deadlines.set_deadline(deadlines.LEAVING_SECONDS)
    finally:
        deadlines.clear_deadline()


def _in_turn(due: Sequence[DueScope]) -> list[DueScope]:
    """Sort by turn, and within a turn start after the tenant that this process served last."""
    last = _served_last
    return sorted(due, key=lambda scope: (scope.turn, last is not None and scope.tenant_id <= last, scope.tenant_id))


def _take(scope: DueScope, consumer: str, seconds: float) -> Lease | None:
    global _served_last
    _served_last = scope.tenant_id
    with tenant_scope(scope.tenant_id):
        if scope.exhausted:
            services.expire_leases()
        return lease_next(scope.queue, scope_id=scope.scope_id, consumer=consumer, seconds=seconds)
