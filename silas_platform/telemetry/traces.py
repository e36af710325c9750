"""Start and stop sending this process's spans (`kernel.tracing`) to a collector. Off until its address is set.

No provider is set for the whole process, so libraries' spans stay unrecorded: some hold texts.
"""

from __future__ import annotations

import atexit
from typing import TYPE_CHECKING

from kernel import tracing
from silas_platform.settings import env
from silas_platform.telemetry.instruments import resource

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")

_provider: TracerProvider | None = None


def start(role: str) -> TracerProvider | None:
    """Called once, in a process that does not fork after it: the exporter has a thread. OpenTelemetry's own variables
    set the sampler (`OTEL_TRACES_SAMPLER`), batches and headers."""
    global _provider
    if not any(env.text(name) for name in ENDPOINTS):
        return None
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider

    from silas_platform.telemetry.span_processor import SpanProcessor

    _provider = TracerProvider(resource=resource(role), shutdown_on_exit=False)
    _provider.add_span_processor(SpanProcessor(OTLPSpanExporter()))
    tracing.record_with(_provider)
    atexit.register(stop)
    return _provider


def stop() -> None:
    """Send what is left, and end recording."""
    global _provider
    provider, _provider = _provider, None
    if provider is not None:
        tracing.record_with(None)
        provider.shutdown()
