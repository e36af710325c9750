"""Run deliveries that mostly wait, for a person or an outside service, in threads beside the worker's other work.

Each thread has its own event loop, which keeps the lease alive. When a process already runs as many deliveries as the
consumer allows, and none ends within a moment, the message is deferred for some seconds and any process may lease it.
Threads are daemons: when the process ends, the lease expires and the message is delivered again.
"""

from __future__ import annotations

import asyncio
import threading
from uuid import UUID

from django.db import connection

from apps.bus import services
from apps.bus.deliveries import deliver
from apps.bus.registry import Consumer
from apps.bus.schemas import Lease
from kernel.tenancy import tenant_scope

SLOT_TIMEOUT_SECONDS, BUSY_SECONDS = 0.25, 10.0
_slots: dict[str, threading.BoundedSemaphore] = {}


def start(tenant_id: UUID, lease: Lease, consumer: Consumer, *, seconds: float) -> None:
    """Deliver in a thread of its own, or defer the message when the consumer's slots are taken."""
    slots = _slots.setdefault(consumer.name, threading.BoundedSemaphore(consumer.max_concurrency))
    if not slots.acquire(timeout=SLOT_TIMEOUT_SECONDS):
        with tenant_scope(tenant_id):
            services.defer(lease, seconds=BUSY_SECONDS, reason="in_use")
        return

    def run() -> None:
        try:
            asyncio.run(deliver(tenant_id, lease, seconds=seconds))
        finally:
            connection.close()
            slots.release()

    threading.Thread(target=run, name=consumer.name, daemon=True).start()
