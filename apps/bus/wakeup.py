"""Wake a worker after the commit that queued something for it; the rows are the truth.

A wake-up names the kind of worker, which then looks in the rows for what is due. It never fails or delays what was
committed: a broker that is away costs seconds, because beat wakes every kind of worker now and then.
"""

from __future__ import annotations

import functools
import logging

from celery import current_app
from django.db import transaction
from kombu.connection import Connection
from kombu.exceptions import LimitExceeded, OperationalError
from kombu.pools import producers

from apps.bus.workers import Worker
from kernel import fault_points
from kernel.tenancy import before_commit

DRAIN = "bus.drain"
# One try without a pause: no request may wait for a broker that is away or does not answer.
_TIMEOUT_SECONDS = 2
_NO_RETRY = {
    "max_retries": 0,
    "interval_start": 0,
    "interval_step": 0,
    "interval_max": 0,
    "socket_timeout": _TIMEOUT_SECONDS,
    "socket_connect_timeout": _TIMEOUT_SECONDS,
}
_log = logging.getLogger(__name__)


def wake_after_commit(worker: Worker) -> None:
    """Wake a worker of this kind once after this scope's commit, however often it is called."""
    before_commit(_wake_once, worker)


def wake(worker: Worker) -> None:
    """Wake a worker of this kind now, over one of the few connections that this process keeps to its broker."""
    fault_points.reach("bus.before_poke")
    pool = producers[_broker(current_app.conf.broker_write_url)]
    try:
        with pool.acquire(block=True, timeout=_TIMEOUT_SECONDS) as producer:
            current_app.send_task(DRAIN, args=[worker.value], queue=worker.value, producer=producer, retry=False)
    except (OperationalError, LimitExceeded):
        _log.warning("bus_poke_lost")


@functools.lru_cache(maxsize=4)
def _broker(address: str) -> Connection:
    # Cached because building a connection's settings takes as long as a wake-up.
    connection: Connection = current_app.connection_for_write(address, transport_options=_NO_RETRY)
    return connection


def _wake_once(workers: list[Worker]) -> None:
    for worker in dict.fromkeys(workers):
        # The rows are committed: an error of the broker must not become an error of their writer.
        transaction.on_commit(functools.partial(wake, worker), robust=True)
