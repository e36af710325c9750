"""Spans: what may begin a trace, how a message carries it, and that no text gets in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased
from opentelemetry.semconv import schemas
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes, messaging_attributes
from opentelemetry.trace import StatusCode

from kernel import tracing
from kernel.tracing import ATTRIBUTES, SpanName
from tests.factories.traces import Spans, recording

SECRET = "IBAN DE44 5001 0517"
GUIDE = Path(__file__).parents[2] / "docs" / "operations.md"


@pytest.fixture
def spans() -> Iterator[Spans]:
    with recording() as kept:
        yield kept


def test_nothing_is_recorded_without_a_provider() -> None:
    with tracing.span(SpanName.TURN, turn=1) as span:
        span.set(outcome="answered")
        span.fail("oops")
        assert tracing.current_trace_id() == ""
    assert not tracing.is_on()
    assert str(UUID(tracing.trace_for_message()))


def test_spans_nest(spans: Spans) -> None:
    with tracing.span(SpanName.TURN):
        trace_id = tracing.current_trace_id()
        with tracing.span(SpanName.GATES, gates=2):
            pass
    gates, turn = spans.all
    assert gates.parent is not None
    assert gates.parent.span_id == turn.context.span_id
    assert f"{turn.context.trace_id:032x}" == trace_id
    assert dict(gates.attributes or {}) == {"silas.gate.count": 2}
    assert tracing.current_trace_id() == ""


@pytest.mark.parametrize("name", sorted({*SpanName} - {SpanName.MESSAGE, SpanName.TURN, SpanName.JOB}))
def test_step_outside_of_a_trace_is_not_recorded(spans: Spans, name: SpanName) -> None:
    with tracing.span(name):
        pass
    assert spans.names == []


def test_message_carries_the_trace_to_another_process(spans: Spans) -> None:
    with tracing.span(SpanName.MESSAGE):
        carried = tracing.trace_for_message()
    assert len(carried) <= 64
    with tracing.span(SpanName.JOB, parent=carried):
        pass
    accepted, job = spans.all
    assert job.context.trace_id == accepted.context.trace_id
    assert job.parent is not None
    assert job.parent.span_id == accepted.context.span_id


def test_linked_message_is_referred_to_and_not_joined(spans: Spans) -> None:
    with tracing.span(SpanName.MESSAGE):
        carried = tracing.trace_for_message()
    with tracing.span(SpanName.JOB, link=carried):
        pass
    accepted, job = spans.all
    assert job.context.trace_id != accepted.context.trace_id
    assert job.parent is None
    assert [link.context.trace_id for link in job.links] == [accepted.context.trace_id]


@pytest.mark.parametrize(
    "given",
    [
        "",
        "trace",
        str(uuid4()),
        f"00-{0:032x}-{1:016x}-01",
        f"00-{1:032x}-{0:016x}-01",
        f"01-{1:032x}-{1:016x}-01",
        f"00-{1:032x}-{1:016x}-01\n",
        f"00-{'g' * 32}-{1:016x}-01",
    ],
)
def test_message_without_a_trace_begins_one(spans: Spans, given: str) -> None:
    with tracing.span(SpanName.JOB, parent=given):
        pass
    assert spans.all[0].parent is None


def test_trace_that_was_not_sampled_stays_so_in_the_next_process() -> None:
    with recording(ParentBased(ALWAYS_OFF)) as dropped, tracing.span(SpanName.MESSAGE):
        carried = tracing.trace_for_message()
    assert int(carried[-2:], 16) & 1 == 0
    with recording(ParentBased(ALWAYS_ON)) as kept, tracing.span(SpanName.JOB, parent=carried):
        assert tracing.current_trace_id() in carried
    assert dropped.all == []
    assert kept.all == []


def test_exception_leaves_its_class_and_no_text(spans: Spans) -> None:
    with pytest.raises(ValueError, match="IBAN"), tracing.span(SpanName.TURN):
        raise ValueError(SECRET)
    (turn,) = spans.all
    assert turn.status.status_code == StatusCode.ERROR
    assert turn.status.description is None
    assert turn.attributes is not None
    assert turn.attributes["error.type"] == "ValueError"
    assert turn.events == ()
    assert "IBAN" not in turn.to_json()


@pytest.mark.parametrize("given", [SECRET, "ada@example.com", "a b", "x" * 121, "", "line\n"])
def test_what_is_no_word_is_replaced(spans: Spans, given: str) -> None:
    with tracing.span(SpanName.TURN, label=given or " ", outcome=given) as span:
        span.set(answered_by=given)
        span.fail(given)
    (turn,) = spans.all
    assert turn.attributes is not None
    for name in ("outcome", "answered_by", "error"):
        assert turn.attributes[ATTRIBUTES[name]] == "_OTHER"
    assert turn.name == "turn _OTHER"


def test_other_attributes_and_values_are_refused(spans: Spans) -> None:
    with pytest.raises(KeyError), tracing.span(SpanName.TURN, text="hello"):
        pass
    with pytest.raises(TypeError), tracing.span(SpanName.TURN, outcome={"a": 1}):
        pass
    assert spans.names == []


def test_what_is_over_is_recorded_with_its_times(spans: Spans) -> None:
    begun = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    carried = f"00-{7:032x}-{9:016x}-01"
    for parent in (carried, "no-trace"):
        tracing.record_span(SpanName.APPROVAL, parent=parent, begun=begun, ended=begun + timedelta(hours=3), risk="low")
    (wait,) = spans.all
    assert wait.context.trace_id == 7
    assert wait.start_time is not None
    assert wait.end_time is not None
    assert wait.end_time - wait.start_time == 3 * 3600 * 10**9


def test_library_neither_sees_nor_joins_the_trace(spans: Spans) -> None:
    with tracing.span(SpanName.TURN):
        assert not trace.get_current_span().get_span_context().is_valid
        with trace.get_tracer("library").start_as_current_span("chat", attributes={"prompt": SECRET}):
            pass
    assert spans.names == ["turn"]


def test_names_of_the_conventions_exist() -> None:
    known = {
        value
        for module in (gen_ai_attributes, messaging_attributes)
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, str)
    }
    theirs = {name for name in ATTRIBUTES.values() if name.startswith(("gen_ai.", "messaging."))}
    assert len(theirs) > 5
    assert theirs <= known
    assert tracing.SCHEMA_URL in [each.value for each in schemas.Schemas]


def test_guide_lists_every_span_and_attribute() -> None:
    told = GUIDE.read_text().partition("### Traces")[2].partition("\n## ")[0]
    named = set(re.findall(r"`([\w.]+)`", told))
    assert {name.value for name in SpanName} <= named
    assert set(ATTRIBUTES.values()) <= named
