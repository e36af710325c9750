"""Wake a worker after the commit that owes it something; the rows are the truth.

A poke names the kind of worker, which then asks the rows what is due. A broker that is away costs seconds: beat wakes
every kind of worker now and then. A poke never fails or delays what was committed.
"""

from __future__ import annotations

import functools
import logging

from celery import current_app
from django.db import transaction
from kombu.connection import Connection
from kombu.exceptions import LimitExceeded, OperationalError
from kombu.pools import producers

from apps.bus.enums import Worker
from kernel import fault_points
from kernel.tenancy import before_commit

DRAIN = "bus.drain"
# Nobody waits for a broker that is away or does not answer: one try, no pause.
_PATIENCE_SECONDS = 2
_AT_ONCE = {
    "max_retries": 0,
    "interval_start": 0,
    "interval_step": 0,
    "interval_max": 0,
    "socket_timeout": _PATIENCE_SECONDS,
    "socket_connect_timeout": _PATIENCE_SECONDS,
}
_log = logging.getLogger(__name__)


def after_commit(worker: Worker) -> None:
    """Wake a worker of this kind once this scope has committed, however often it is asked for."""
    before_commit(_poke_once, worker)


def poke(worker: Worker) -> None:
    """Wake a worker of this kind now, over one of the few lines that this process keeps to its broker."""
    fault_points.reach("bus.before_poke")
    lines = producers[_broker(current_app.conf.broker_write_url)]
    try:
        with lines.acquire(block=True, timeout=_PATIENCE_SECONDS) as producer:
            current_app.send_task(DRAIN, args=[worker.value], queue=worker.value, producer=producer, retry=False)
    except (OperationalError, LimitExceeded):
        _log.warning("bus_poke_lost")


@functools.lru_cache(maxsize=4)
def _broker(address: str) -> Connection:
    """How to reach it, put together once: that takes as long as a poke."""
    line: Connection = current_app.connection_for_write(address, transport_options=_AT_ONCE)
    return line


def _poke_once(workers: list[Worker]) -> None:
    for worker in dict.fromkeys(workers):
        transaction.on_commit(functools.partial(poke, worker), robust=True)
