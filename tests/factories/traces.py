"""Spans kept in memory instead of being sent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Sampler

from kernel import tracing


class Spans(InMemorySpanExporter):
    @property
    def all(self) -> list[ReadableSpan]:
        return list(self.get_finished_spans())

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.all]

    def named(self, name: str) -> ReadableSpan:
        (found,) = [span for span in self.all if span.name == name]
        return found


@contextmanager
def recording(sampler: Sampler = ALWAYS_ON) -> Iterator[Spans]:
    spans = Spans()
    provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(spans))
    tracing.record_with(provider)
    try:
        yield spans
    finally:
        tracing.record_with(None)
        provider.shutdown()
