"""Celery tasks of the bus: carry out what is due, and give back what a process that was ended held."""

from __future__ import annotations

import os
import socket
from functools import partial

from celery import current_app, shared_task
from celery.signals import worker_ready

from apps.bus import draining, queries, services, wakeup
from apps.bus.enums import Worker
from kernel.tenancy import for_each_tenant, in_tenant_scope


@shared_task(name=wakeup.DRAIN)
def drain(worker: str) -> None:
    draining.drain(Worker(worker), consumer=consumer_name(os.getpid()))


def consumer_name(pid: int) -> str:
    """The name of a child process of this machine's workers in the leases that it takes."""
    return f"worker:{socket.gethostname()[:40]}:{pid}"


@shared_task(name="bus.give_back")
def give_back(consumer: str) -> None:
    """Deliver again at once what a process that was ended held, instead of when its leases run out."""
    for_each_tenant(queries.tenants_held_by(consumer), in_tenant_scope(partial(services.give_back, consumer)))


@worker_ready.connect
def _begin(**_: object) -> None:
    """What a worker of before left, and what was owed meanwhile, is looked for at once (spec 19.2.2)."""
    for queue in current_app.amqp.queues.consume_from:
        current_app.send_task(wakeup.DRAIN, args=[queue], queue=queue)
