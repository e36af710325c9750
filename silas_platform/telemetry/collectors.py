"""Gauges of `/metrics` that are read when it is asked: the database's and Redis's, and this process's sockets."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import suppress

import redis
from django.core.cache import cache
from django.db import Error as DatabaseError
from django.db import connection
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from apps.approvals.enums import Risk
from apps.bus.enums import Queue
from apps.bus.workers import Worker
from kernel.presence import open_presences
from silas_platform.worker_watchdog import workers_alive

_log = logging.getLogger(__name__)
# Scrapes of all web processes within this time share one read.
CACHE_SECONDS = 10
_QUEUES, _RISKS = ("queue", list(Queue)), ("risk", list(Risk))
# Name, its label with all of the label's values, and what it is. What the database has no row of is 0.
DATABASE_GAUGES: dict[str, tuple[tuple[str, list[Queue] | list[Risk]] | None, str]] = {
    "queue_due": (_QUEUES, "Messages that may be delivered now"),
    "queue_scheduled": (_QUEUES, "Messages that are due later"),
    "queue_oldest_due_seconds": (_QUEUES, "For how long the oldest message has been due"),
    "queue_leased": (_QUEUES, "Messages being delivered"),
    "queue_leases_expired": (_QUEUES, "Messages whose worker stopped renewing its lease"),
    "queue_dead": (_QUEUES, "Messages that failed for good"),
    "cards_waiting": (_RISKS, "Cards that wait for a decision"),
    "cards_oldest_seconds": (_RISKS, "For how long the oldest card has waited"),
    "spend_today_usd": (None, "Charged and reserved for today (UTC), of all companies, in US dollars"),
}
Values = dict[tuple[str, str], float]


class DatabaseCollector(Collector):
    """Numbers of the whole installation, the same from every web process."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        values = _values()
        yield GaugeMetricFamily("silas_database_up", "Whether the database answered", value=values is not None)
        if values is not None:
            for name, (labelled, text) in DATABASE_GAUGES.items():
                if labelled is None:
                    yield GaugeMetricFamily(f"silas_{name}", text, value=values.get((name, ""), 0))
                else:
                    label, possible = labelled
                    yield _family(
                        name, text, label, ((each.value, values.get((name, each.value), 0)) for each in possible)
                    )
        try:
            alive = [(worker.value, workers_alive(worker.value)) for worker in Worker]
        except redis.RedisError as error:
            _log.warning("metrics_without_redis: %s", type(error).__name__)
            alive = []
        yield GaugeMetricFamily("silas_redis_up", "Whether Redis answered", value=bool(alive))
        if alive:
            yield _family("workers", "Worker programs alive", "queue", alive)


class SocketCollector(Collector):
    """This process's sockets."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield GaugeMetricFamily("silas_sockets", "Open sockets of this process", value=open_presences())


def read_database() -> Values:
    with connection.cursor() as cursor:
        cursor.execute("SELECT metric, label, value FROM platform_metrics()")
        return {(metric, label): value for metric, label, value in cursor.fetchall()}


def _values() -> Values | None:
    """What the database says, at most `CACHE_SECONDS` old; None where it does not answer. Redis may be away."""
    with suppress(redis.RedisError):
        if (cached := cache.get("metrics")) is not None:
            return dict(cached)
    try:
        values = read_database()
    except DatabaseError as error:
        _log.warning("metrics_without_database: %s", type(error).__name__)
        return None
    with suppress(redis.RedisError):
        cache.set("metrics", values, CACHE_SECONDS)
    return values


def _family(name: str, text: str, label: str, values: Iterable[tuple[str, float]]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"silas_{name}", text, labels=[label])
    for value, number in values:
        family.add_metric([value], number)
    return family
