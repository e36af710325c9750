"""The worker's doors to the bus: carry out what is owed, and upkeep that visits every tenant in its own scope."""

from __future__ import annotations

import os
import socket
from functools import partial
from uuid import UUID

from celery import current_app, shared_task
from celery.signals import worker_ready

from apps.bus import draining, queries, services, upkeep, wakeup
from apps.bus.enums import Queue
from apps.bus.registry import consumed_queues
from apps.tenants.queries import over_all
from kernel.tenancy import in_batches, scoped


@shared_task(name=wakeup.DRAIN)
def drain(queue: str = "", tenant_id: str = "") -> None:
    first = (Queue(queue), UUID(tenant_id)) if queue else None
    draining.drain(consumer=consumer_name(os.getpid()), first=first)


def consumer_name(pid: int) -> str:
    """The name of a child process of this machine's workers in the leases that it takes."""
    return f"worker:{socket.gethostname()[:40]}:{pid}"


@shared_task(name="bus.give_back")
def give_back(consumer: str) -> None:
    """What a worker held that was ended is owed again at once, not when its leases run out."""
    over_all(scoped(partial(services.give_back, consumer)))
    wakeup.poke()


@shared_task(name="bus.sweep")
def sweep() -> None:
    over_all(scoped(services.sweep))
    if queries.waiting_lines(consumed_queues()):
        wakeup.poke()


@shared_task(name="bus.clear")
def clear() -> None:
    over_all(partial(in_batches, batch=upkeep.clear_batch))


@worker_ready.connect
def _begin(**_: object) -> None:
    """What a worker of before left, and what was owed meanwhile, is looked for at once (spec 19.2.2)."""
    current_app.send_task("bus.sweep")
