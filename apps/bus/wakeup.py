"""How does a worker learn that something waits? A poke after the commit; the rows are the truth.

A poke says where something came in: whoever hears it looks there first, and then asks the rows whose turn it is, so
that a thousand pokes of one tenant put nobody else at the end of a line. A broker that is away costs seconds: the sweep
pokes again. It never fails or delays what was committed.
"""

from __future__ import annotations

import functools
import logging

from celery import current_app
from django.db import transaction
from kombu.connection import Connection
from kombu.exceptions import LimitExceeded, OperationalError
from kombu.pools import producers

from kernel import fault_points
from kernel.tenancy import current_tenant_id, gather_for_commit

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


def after_commit(queue: str) -> None:
    """Wake a worker once this scope has committed, however often it is asked for."""
    gather_for_commit(_poke_once, (queue, str(current_tenant_id())))


def poke(*where: str) -> None:
    """Wake a worker now, over one of the few lines that this process keeps to its broker. `where` is the queue and the
    tenant's id, if they are known."""
    fault_points.reach("bus.before_poke")
    lines = producers[_broker(current_app.conf.broker_write_url)]
    try:
        with lines.acquire(block=True, timeout=_PATIENCE_SECONDS) as producer:
            current_app.send_task(DRAIN, args=where, producer=producer, retry=False)
    except (OperationalError, LimitExceeded):
        _log.warning("bus_poke_lost")


@functools.lru_cache(maxsize=4)
def _broker(address: str) -> Connection:
    """How to reach it, put together once: that takes as long as a poke."""
    line: Connection = current_app.connection_for_write(address, transport_options=_AT_ONCE)
    return line


def _poke_once(places: list[tuple[str, str]]) -> None:
    transaction.on_commit(lambda: poke(*places[0]), robust=True)
