"""Carry out deliveries that mostly wait, for a person or an outside service, in threads beside the worker's other work.

Each thread has an event loop of its own, which keeps the lease alive. Where a process has as many as the consumer
allows, and none ends within a moment, the message goes back for some seconds, and any process may take it. A thread
ends with its process: the lease runs out, and the message is delivered again.
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

PATIENCE_SECONDS, BUSY_SECONDS = 0.25, 10.0
_slots: dict[str, threading.BoundedSemaphore] = {}


def begin(tenant_id: UUID, lease: Lease, consumer: Consumer, *, seconds: float) -> None:
    slots = _slots.setdefault(consumer.name, threading.BoundedSemaphore(consumer.at_once))
    if not slots.acquire(timeout=PATIENCE_SECONDS):
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
