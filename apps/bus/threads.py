"""Run deliveries that mostly wait, for a person or an outside service, in threads beside the worker's other work.

Each thread has its own event loop, which keeps the lease alive. When a process already runs as many deliveries as the
consumer allows, and none ends within a moment, the message is deferred for some seconds and any process may lease it.
A process that is to end gives its threads a moment; what still runs by then is delivered again when its lease expires.
"""

from __future__ import annotations

import asyncio
import threading
import time
from uuid import UUID

from celery.signals import worker_shutting_down
from django.db import connection

from apps.bus import services
from apps.bus.deliveries import deliver
from apps.bus.registry import Consumer
from apps.bus.schemas import Lease
from kernel.tenancy import tenant_scope

SLOT_TIMEOUT_SECONDS, BUSY_SECONDS, STOP_SECONDS = 0.25, 10.0, 5.0
_slots: dict[str, threading.BoundedSemaphore] = {}
_running: set[threading.Thread] = set()
_stopping = threading.Event()


def is_stopping() -> bool:
    """Whether this process is to end: a delivery that waits for something that may never come ends now."""
    return _stopping.is_set()


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
            _running.discard(threading.current_thread())

    # A daemon, so that a delivery that never ends cannot keep its process from ending.
    thread = threading.Thread(target=run, name=consumer.name, daemon=True)
    # Before it starts: a short delivery removes itself first, and would then be added for good.
    _running.add(thread)
    try:
        thread.start()
    except RuntimeError:  # the machine has no room for another thread now
        _running.discard(thread)
        slots.release()
        with tenant_scope(tenant_id):
            services.defer(lease, seconds=BUSY_SECONDS, reason="no_thread")


@worker_shutting_down.connect
def _stop(**_: object) -> None:
    _stopping.set()


def wait_for_threads() -> None:
    """Wait up to `STOP_SECONDS` for the threads of this process to finish. Called once, when the process ends."""
    _stopping.set()
    ends = time.monotonic() + STOP_SECONDS
    for thread in list(_running):
        thread.join(max(0.0, ends - time.monotonic()))
