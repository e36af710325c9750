"""Metrics of the bus: waiting times, lease durations and lost leases (contract silas 15, telemetry event).

Recorded with OpenTelemetry, which discards them until an operator sets up an exporter, and logged to `silas.bus` at
level DEBUG with their trace. Ids and numbers only.
"""

from __future__ import annotations

import logging

from opentelemetry import metrics

from apps.bus.models import QueueMessage
from kernel.clock import now

_log = logging.getLogger("silas.bus")
_meter = metrics.get_meter("silas.bus")
_BUCKETS = (0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 1800)
_waits = _meter.create_histogram(
    "queue_wait",
    unit="s",
    description="From when it was due until it was taken",
    explicit_bucket_boundaries_advisory=_BUCKETS,
)
_holds = _meter.create_histogram(
    "lease_duration", unit="s", description="From taken until done", explicit_bucket_boundaries_advisory=_BUCKETS
)
_beats = _meter.create_counter("lease_heartbeat", description="Leases renewed")
_losses = _meter.create_counter("lease_expired", description="Holders that fell silent")
_depths = _meter.create_gauge("queue_depth_sample", description="Scopes with due messages, as a worker finds them")


def taken(message: QueueMessage) -> None:
    wait = max((now() - message.available_at).total_seconds(), 0.0)
    _waits.record(wait, {"queue": message.queue})
    _log_value("queue_wait_ms", wait * 1000, message)


def done(message: QueueMessage, seconds: float) -> None:
    _holds.record(seconds, {"queue": message.queue})
    _log_value("lease_duration_ms", seconds * 1000, message)


def renewed(message: QueueMessage) -> None:
    _beats.add(1, {"queue": message.queue})
    _log_value("lease_heartbeat", 1, message)


def expired(queue: str, times: int) -> None:
    _losses.add(times, {"queue": queue})
    _log.debug("lease_expired queue=%s value=%d", queue, times)


def due(worker: str, scopes: int) -> None:
    """Number of due scopes that a worker read, at most `queries.DUE_AT_A_TIME`."""
    _depths.set(scopes, {"worker": worker})
    _log.debug("queue_depth_sample worker=%s value=%d", worker, scopes)


def _log_value(name: str, value: float, message: QueueMessage) -> None:
    if _log.isEnabledFor(logging.DEBUG):
        _log.debug(
            "%s queue=%s message=%s trace=%s value=%.1f", name, message.queue, message.pk, message.trace_id, value
        )
