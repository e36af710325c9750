"""Carry out what is due: one wake-up of a worker.

A worker asks which scopes have due messages, of all tenants at once, and serves them in turn: every tenant's first
scope before any tenant's second. It asks again when that list is a moment old, and goes on after the tenant that it
served last, so that no tenant's ten thousand messages delay another tenant's one. Called by `tasks.drain` alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from uuid import UUID

from apps.bus import deadlines, queries, services, telemetry, threads, wakeup
from apps.bus.deliveries import deliver, take
from apps.bus.enums import Worker
from apps.bus.queries import DueScope
from apps.bus.registry import consumer_of, queues_of
from apps.bus.schemas import Lease
from kernel.tenancy import tenant_scope

LEASE_SECONDS = 120.0
# How long a worker believes a list of due scopes, and how long one wake-up keeps it from its other tasks.
LIST_SECONDS, SHIFT_SECONDS = 0.5, 10.0

_served_last: UUID | None = None


def drain(worker: Worker, *, consumer: str, lease_seconds: float = LEASE_SECONDS) -> None:
    """Carry out what this kind of worker owes until nothing is due or the shift ends; then another one is woken.

    `consumer` names this process in the leases that it takes.
    """
    ends = time.monotonic() + SHIFT_SECONDS
    delivered = 0
    try:
        with asyncio.Runner() as runner:
            while due := queries.due(queues_of(worker)):
                telemetry.due(worker, len(due))
                before, stale = delivered, time.monotonic() + LIST_SECONDS
                for scope in _in_turn(due):
                    lease = _take(scope, consumer, lease_seconds)
                    if lease is None:
                        continue
                    delivered += 1
                    if delivered == 2:
                        # Where there is a second message there may be a third: another worker may have time for it.
                        wakeup.poke(worker)
                    found = consumer_of(lease.message.queue, lease.message.kind)
                    if found and found.at_once:
                        threads.begin(scope.tenant_id, lease, found, seconds=lease_seconds)
                    else:
                        deadlines.within()
                        runner.run(deliver(scope.tenant_id, lease, seconds=lease_seconds))
                    if time.monotonic() >= ends:
                        wakeup.poke(worker)
                        return
                    if time.monotonic() >= stale:
                        break
                if delivered == before:
                    return
            deadlines.within(deadlines.LEAVING_SECONDS)
    finally:
        deadlines.clear()


def _in_turn(due: Sequence[DueScope]) -> list[DueScope]:
    """By turn, and within a turn beginning after the tenant that this process served last."""
    last = _served_last
    return sorted(due, key=lambda each: (each.turn, last is not None and each.tenant_id <= last, each.tenant_id))


def _take(scope: DueScope, consumer: str, seconds: float) -> Lease | None:
    global _served_last
    _served_last = scope.tenant_id
    with tenant_scope(scope.tenant_id):
        if scope.exhausted:
            services.sweep()
        return take(scope.queue, scope_id=scope.scope_id, consumer=consumer, seconds=seconds)
