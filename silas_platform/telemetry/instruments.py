"""Start the recording of this process's instruments, which the rooms create with the OpenTelemetry API.

Until `start` finds a reader configured, an instrument does nothing. Attributes of instruments are values of our
enumerations, never an id or a text, so that the number of series is bounded; the SDK's limit is the second wall.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any

from django.conf import settings
from opentelemetry import metrics
from prometheus_client import CollectorRegistry, ProcessCollector

from silas_platform.settings import env

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.resources import Resource

# What `/metrics` of this process shows.
REGISTRY = CollectorRegistry()
STOP_MILLISECONDS = 2_000
_provider: MeterProvider | None = None
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")


def start(role: str) -> MeterProvider | None:
    """Set up this process's readers. Called once, in a process that does not fork after it: an exporter has threads.

    Only web processes answer `/metrics`; workers' own numbers leave by OTLP.
    """
    readers: list[Any] = []
    if role == "web" and settings.METRICS_TOKEN:
        from opentelemetry.exporter.prometheus import PrometheusMetricReader

        from silas_platform.telemetry.collectors import DatabaseCollector, SocketCollector

        ProcessCollector(registry=REGISTRY)
        REGISTRY.register(DatabaseCollector())
        REGISTRY.register(SocketCollector())
        readers.append(
            PrometheusMetricReader(
                disable_target_info=True, prefix="silas", scope_info_enabled=False, registry=REGISTRY
            )
        )
    if any(env.text(name) for name in _ENDPOINTS):
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

        readers.append(PeriodicExportingMetricReader(OTLPMetricExporter()))
    if not readers:
        return None
    from opentelemetry.sdk.metrics import MeterProvider

    global _provider
    provider = _provider = MeterProvider(readers, resource=resource(role))
    metrics.set_meter_provider(provider)
    return provider


def stop() -> None:
    """Send what is left and end the exporters of this process."""
    global _provider
    provider, _provider = _provider, None
    if provider is not None:
        provider.shutdown(timeout_millis=STOP_MILLISECONDS)


def resource(role: str) -> Resource:
    """Who speaks; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES add to it and overrule the name."""
    from opentelemetry.sdk.resources import Resource

    instance = f"{socket.gethostname()[:40]}:{os.getpid()}"
    named = {} if env.text("OTEL_SERVICE_NAME") else {"service.name": f"silas-{role}"}
    return Resource.create({"service.instance.id": instance, **named})
