"""Celery tasks of the bus: deliver what is due, and release the leases of a process that was killed."""

from __future__ import annotations

import os
import socket
from functools import partial

from celery import current_app, shared_task
from celery.signals import worker_ready

from apps.bus import queries, services, wakeup
from apps.bus.worker import drain as drain_queues
from apps.bus.workers import Worker
from kernel.tenancy import for_each_tenant, in_tenant_scope


@shared_task(name=wakeup.DRAIN)
def drain(worker: str) -> None:
    drain_queues(Worker(worker), consumer=consumer_name(os.getpid()))


def consumer_name(pid: int) -> str:
    """Name under which a worker's child process on this machine holds its leases."""
    return f"worker:{socket.gethostname()[:40]}:{pid}"


@shared_task(name="bus.give_back")
def release_leases(consumer: str) -> None:
    """Redeliver at once what a killed process held, instead of when its leases expire."""
    for_each_tenant(queries.tenants_with_leases(consumer), in_tenant_scope(partial(services.release_leases, consumer)))


@worker_ready.connect
def _drain_at_start(**_: object) -> None:
    """Look for messages that were queued, or left by an earlier worker, while no worker ran (spec 19.2.2)."""
    for queue in current_app.amqp.queues.consume_from:
        current_app.send_task(wakeup.DRAIN, args=[queue], queue=queue)
