"""Batches of spans, as OpenTelemetry's SDK sends them."""

from opentelemetry.sdk.trace.export import BatchSpanProcessor

from silas_platform.telemetry.instruments import STOP_MILLISECONDS


class SpanProcessor(BatchSpanProcessor):
    def shutdown(self) -> None:
        """Send what is left, for as long as a process may take to end: a collector may be away."""
        self._batch_processor.shutdown(timeout_millis=STOP_MILLISECONDS)
