"""Record spans of a turn and of what follows from it: gates, models, tools, approvals, verification and sending.

Off until `silas_platform.telemetry.traces` gives a tracer provider; until then `span` does nothing. This module is the
only one that writes spans, and `ATTRIBUTES` lists all that a span can hold: ids, counts and words of our enumerations.
Texts of visitors, members, models and exceptions have no place in one. The current span is kept in a variable of our
own, so no library sees it, adds spans to the trace or sends its id to another server.

A message on the bus carries the trace in its `trace_id`, as the `traceparent` of W3C Trace Context. What a message
causes therefore belongs to its trace, in whichever process it is delivered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID, uuid4

from opentelemetry.context import Context
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    Tracer,
    TracerProvider,
    set_span_in_context,
)

# The last release of the semantic conventions with those of generative AI, which are a repository of their own since
# (github.com/open-telemetry/semantic-conventions-genai). Spans and attributes named `gen_ai` are those of this version.
SCHEMA_URL = "https://opentelemetry.io/schemas/1.41.0"


class SpanName(StrEnum):
    MESSAGE = "accept_message"
    TURN = "turn"
    GATES = "check_gates"
    AGENT = "invoke_agent"
    MODEL = "chat"
    TOOL = "execute_tool"
    APPROVAL = "wait_for_approval"
    VERIFICATION = "verify"
    SENDING = "send_message"
    JOB = "process"


# By the name under which `span` takes it.
ATTRIBUTES: Mapping[str, str] = {
    "tenant": "silas.tenant.id",
    "operation": "gen_ai.operation.name",
    "deployment": "silas.deployment.id",
    "agent": "gen_ai.agent.name",
    "conversation": "gen_ai.conversation.id",
    "provider": "gen_ai.provider.name",
    "model": "gen_ai.request.model",
    "answered_by": "gen_ai.response.model",
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "tool": "gen_ai.tool.name",
    "system": "messaging.system",
    "operation_type": "messaging.operation.type",
    "queue": "messaging.destination.name",
    "message": "messaging.message.id",
    "kind": "silas.kind",
    "attempt": "silas.attempt",
    "turn": "silas.turn.number",
    "outcome": "silas.outcome",
    "trigger": "silas.gate.trigger",
    "gates": "silas.gate.count",
    "intent": "silas.call.intent",
    "card": "silas.card.id",
    "risk": "silas.card.risk",
    "checks": "silas.check.count",
    "passed": "silas.check.passed",
    "error": "error.type",
}
# What a text must be: one word, and no address. Anything else is replaced by what the conventions have for it.
_WORD = re.compile(r"[\w.:/+-]{1,120}")
_OTHER = "_OTHER"
_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")


@dataclass(frozen=True)
class _Shape:
    """`begins`: may be the first of a trace; any other is recorded only inside of one."""

    kind: SpanKind = SpanKind.INTERNAL
    fixed: Mapping[str, str] = field(default_factory=dict)
    begins: bool = False


_SHAPES: Mapping[SpanName, _Shape] = {
    SpanName.MESSAGE: _Shape(SpanKind.PRODUCER, begins=True),
    SpanName.TURN: _Shape(begins=True),
    SpanName.GATES: _Shape(),
    SpanName.AGENT: _Shape(fixed={"operation": "invoke_agent"}),
    SpanName.MODEL: _Shape(SpanKind.CLIENT, {"operation": "chat"}),
    SpanName.TOOL: _Shape(fixed={"operation": "execute_tool"}),
    SpanName.APPROVAL: _Shape(),
    SpanName.VERIFICATION: _Shape(),
    SpanName.SENDING: _Shape(SpanKind.CLIENT),
    SpanName.JOB: _Shape(SpanKind.CONSUMER, {"system": "silas", "operation_type": "process"}, begins=True),
}


class ActiveSpan:
    """A span that is being recorded; without one, or with tracing off, nothing."""

    __slots__ = ("_span",)

    def __init__(self, span: Span | None) -> None:
        self._span = span

    def set(self, **attributes: object) -> None:
        """Add attributes by their names in `ATTRIBUTES`; None is left out."""
        if self._span is not None and self._span.is_recording():
            self._span.set_attributes(_written(attributes))

    def rename(self, name: SpanName, label: str) -> None:
        if self._span is not None:
            self._span.update_name(f"{name} {_word(label)}")

    def fail(self, error: BaseException | str) -> None:
        """Mark the span as failed, with the error's code or class; never its text."""
        if self._span is not None:
            self.set(error=error if isinstance(error, str) else type(error).__qualname__)
            self._span.set_status(StatusCode.ERROR)


_OFF = ActiveSpan(None)
_tracer: Tracer | None = None
_current: ContextVar[Span | None] = ContextVar("silas_span", default=None)


def record_with(provider: TracerProvider | None) -> None:
    """Record this process's spans with `provider`; None ends recording."""
    global _tracer
    _tracer = None if provider is None else provider.get_tracer("silas", schema_url=SCHEMA_URL)


def is_on() -> bool:
    return _tracer is not None


@contextmanager
def span(
    name: SpanName, *, parent: str = "", link: str = "", label: str = "", start_ns: int | None = None, **given: object
) -> Iterator[ActiveSpan]:
    """Record the block as a span, inside the current one or that of `parent`, the `trace_id` of a message.

    `link`: a message whose trace this one only refers to, because it begins its own. `label` is added to the name.
    An exception that leaves the block marks the span as failed, by its class.
    """
    shape, within = _SHAPES[name], _current.get()
    if _tracer is None or not (within or shape.begins):
        yield _OFF
        return
    linked = _span_context(link)
    # A trace of its own, or all deliveries of a recurring job would grow into one without end.
    context = Context() if linked else _context(parent, within)
    opened = _tracer.start_span(
        f"{name} {_word(label)}" if label else name.value,
        context,
        shape.kind,
        _written({**shape.fixed, **given}),
        [Link(linked)] if linked else None,
        start_ns,
    )
    token, active = _current.set(opened), ActiveSpan(opened)
    try:
        yield active
    # A cancelled block has failed too, and cancellation is no `Exception`.
    except BaseException as error:
        active.fail(error)
        raise
    finally:
        _current.reset(token)
        opened.end()


def record_span(name: SpanName, *, parent: str, begun: datetime, ended: datetime, **given: object) -> None:
    """Record something that is over, in the trace of `parent`; nothing where that is no trace."""
    caused_by = _span_context(parent)
    if _tracer is None or caused_by is None:
        return
    shape = _SHAPES[name]
    context = set_span_in_context(NonRecordingSpan(caused_by), Context())
    attributes = _written({**shape.fixed, **given})
    opened = _tracer.start_span(name.value, context, shape.kind, attributes, start_time=_nanoseconds(begun))
    opened.end(_nanoseconds(ended))


def trace_for_message() -> str:
    """The `trace_id` of a message that no other message caused: of the current span, or of a trace yet without one."""
    within = _current.get()
    if within is None:
        return str(uuid4())
    context = within.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def current_trace_id() -> str:
    """The trace of the current span in hexadecimal, for log lines; "" without one."""
    within = _current.get()
    return "" if within is None else f"{within.get_span_context().trace_id:032x}"


def _context(parent: str, within: Span | None) -> Context:
    """An explicit context always: without one the SDK would look for a library's current span."""
    caused_by = _span_context(parent)
    if caused_by is not None:
        return set_span_in_context(NonRecordingSpan(caused_by), Context())
    return Context() if within is None else set_span_in_context(within, Context())


def _span_context(trace_id: str) -> SpanContext | None:
    found = _TRACEPARENT.fullmatch(trace_id)
    if found is None:
        return None
    trace, span_id, flags = (int(part, 16) for part in found.groups())
    context = SpanContext(trace, span_id, is_remote=True, trace_flags=TraceFlags(flags))
    return context if context.is_valid else None


def _written(attributes: Mapping[str, object]) -> dict[str, str | int | float | bool]:
    return {ATTRIBUTES[name]: _plain(value) for name, value in attributes.items() if value is not None}


def _plain(value: object) -> str | int | float | bool:
    if isinstance(value, str):
        return _word(value)
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, UUID):
        return str(value)
    # A text in a list or an object would pass the check for words, so that nothing but plain values is written.
    raise TypeError(f"no attribute of a span: {type(value).__name__}")


def _word(text: str) -> str:
    found = _WORD.fullmatch(text)
    return found.group() if found else _OTHER


def _nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000_000)
