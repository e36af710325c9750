"""A worker that dies by its own hand at the place it is told. `python -m tests.bus.doomed PLACE`."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus import registry, worker
from apps.bus.enums import Kind, Queue
from apps.bus.workers import Worker
from kernel.tenancy import in_scope


def die_if(here: str) -> None:
    if here == sys.argv[1]:
        os.kill(os.getpid(), signal.SIGKILL)


def effect_and_end(delivery: Any) -> None:
    record(AuditEvent.STAFF_LOGGED_IN, actor="user:test")
    delivery.finish()
    die_if("between effect and commit")


async def handler(delivery: Any) -> None:
    die_if("before the effect")
    await in_scope(delivery.tenant_id, effect_and_end, delivery)
    die_if("after the commit")


if __name__ == "__main__":
    registry._consumers.clear()
    registry.register(Queue.RUNTIME, Kind.SYSTEM_EVENT, handler)
    worker.drain(Worker.WORK, consumer="doomed")
