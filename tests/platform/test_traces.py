"""Traces of a conversation, from its message to what was done and sent: whole, without texts, and over processes."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import StatusCode
from pydantic_ai import models

from apps.bus.enums import Kind
from apps.bus.models import QueueMessage
from apps.bus.wakeup import wake
from apps.bus.workers import Worker
from apps.gates.schemas import GateSpec
from apps.gates.services import save_gate
from apps.messengers import inbound, ports
from apps.messengers.models import Channel
from apps.sessions import runner
from apps.sessions.models import ChatSession
from apps.work.enums import WorkItemStatus
from apps.work.models import WorkItem
from kernel import tracing
from kernel.clock import now
from kernel.tenancy import tenant_scope
from kernel.tracing import SpanName
from llm.calls import PlannedCall
from silas_platform import logs
from silas_platform.telemetry import traces
from silas_platform.up.environment import ROOT, for_program
from tests import nursery
from tests.factories.bus import carry_out_kinds
from tests.factories.messengers import Recorder, make_channel, message
from tests.factories.skills import acting_tool, install, make_folder, read_tool, save_record
from tests.factories.traces import Spans, recording
from tests.factories.work import ARGS, GOAL, NOTE, NOTED, Desk, adopt, make_desk, plan
from tests.fakes.openai_server import FakeOpenAI, Reply, final, serving_in_thread
from tests.fakes.otlp_receiver import Receiver, receiving
from tests.ports import free_port

MODEL = "openai-chat:gpt-4o-mini"
# What a visitor writes, says of themselves and has done; none of it may leave in a span or log line.
WORD, EMAIL, PHONE, NAME = "zanzibar-canary", "canary@example.org", "+491701239876", "Canaria"
MARKERS = (WORD, EMAIL, PHONE.removeprefix("+"), NAME)
CALL = {"order": "H-1", "note": 50, "memo": WORD}
TO_PLANNER = {
    "route": "planner",
    "reason": "acts",
    "interaction_register": "status",
    "interaction_mode": "act_and_report",
    "context_profile": "conversation",
}
PLAN = {"action": "propose", "plan_markdown": plan(PlannedCall("act", CALL))}


@pytest.fixture
def spans() -> Iterator[Spans]:
    with recording() as kept:
        yield kept


@pytest.fixture
def log_lines() -> Iterator[io.StringIO]:
    """Log lines as a collector gets them (`SILAS_LOG=json`)."""
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(logs.json_formatter())
    handler.addFilter(logs.WithoutTexts())
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        yield out
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeOpenAI]:
    replies = [
        final(TO_PLANNER),
        final({"message": f"I have prepared {WORD}.", "plan_action": PLAN}),
        Reply(calls=(("act", json.dumps(CALL)),)),
        final({"summary": f"{WORD} is noted."}),
    ]
    with serving_in_thread(replies) as fake:
        monkeypatch.setenv("OPENAI_BASE_URL", fake.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-house")
        monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", True)
        yield fake


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    adapter = Recorder()
    monkeypatch.setitem(ports._adapters, adapter.kind, adapter)
    return adapter


@pytest.fixture
def desk(tenant: Any, tmp_path: Path, recorder: Recorder) -> Desk:
    known: Any = ARGS
    args = {**known, "properties": {**known["properties"], "memo": {"type": "string"}}}
    tools = [read_tool(), acting_tool(args=args)]
    install(tenant, make_folder(tmp_path, tools=tools, files={"scripts/act.py": NOTE, "checks/done.py": NOTED}))
    save_record(tenant, "orders", "H-1", subject="C-1", total=120)
    desk = adopt(tenant, GOAL)
    with tenant_scope(tenant):
        desk.deployment.model_names = dict.fromkeys(("proxy", "planner", "executor"), MODEL)
        desk.deployment.environment_keys = True
        desk.deployment.save(update_fields=["model_names", "environment_keys"])
        words = {"pattern": r"\A(?!.*forbidden)"}
        save_gate(GateSpec(name="words", on="every_user_message", type="regex", config=words), actor="user:test")
    return desk


def write(channel: Channel, text: str) -> ChatSession:
    """A verified customer writes in the channel."""
    taken = inbound.receive(channel.tenant_id, channel.pk, message(text, peer=PHONE, name=NAME))
    assert taken.session_id is not None
    with tenant_scope(channel.tenant_id):
        known = {"level": "verified", "customer": "C-1", "level_expires_at": now() + timedelta(hours=1)}
        ChatSession.objects.filter(pk=taken.session_id).update(**known)
        session: ChatSession = ChatSession.objects.get(pk=taken.session_id)
        return session


def answer(session: ChatSession) -> None:
    async def run() -> None:
        runner.wake(session.tenant_id, session.pk)
        await runner.settled()

    asyncio.run(run())


def item_of(session: ChatSession) -> WorkItem:
    with tenant_scope(session.tenant_id):
        item: WorkItem = WorkItem.objects.get(session_id=session.pk)
        return item


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def one_wish(desk: Desk, approver: Any) -> ChatSession:
    """A message in a channel, the plan, the approval, the execution, and what is sent of it."""
    session = write(make_channel(desk.deployment), f"Please note 50 on order H-1, memo {WORD}. I am {EMAIL}.")
    answer(session)
    carry_out_kinds(desk.tenant, Kind.CHANNEL_DELIVERY)
    desk.decide(item_of(session), approver)
    desk.work()
    carry_out_kinds(desk.tenant, Kind.CHANNEL_DELIVERY)
    assert item_of(session).status == WorkItemStatus.DONE
    assert desk.order().data["note"] == 50
    return session


def test_turn_with_an_approval_and_its_execution_is_one_trace(
    desk: Desk, provider: FakeOpenAI, recorder: Recorder, approver: Any, spans: Spans
) -> None:
    session = one_wish(desk, approver)
    assert recorder.sent
    root = spans.named("accept_message")
    ours = [span for span in spans.all if span.context.trace_id == root.context.trace_id]
    assert {
        "accept_message",
        "turn",
        "check_gates",
        "invoke_agent proxy",
        "invoke_agent planner",
        "invoke_agent executor",
        "chat gpt-4o-mini",
        "wait_for_approval",
        "process execution_request",
        "execute_tool act",
        "verify",
        "process channel_delivery",
        "send_message",
    } <= {span.name for span in ours}
    by_id = {span.context.span_id: span for span in ours}
    assert [span.name for span in ours if span.parent is None] == ["accept_message"]
    for span in ours:
        assert span.parent is None or span.parent.span_id in by_id

    def parent(name: str) -> str:
        found = spans.named(name).parent
        assert found is not None
        return by_id[found.span_id].name

    assert parent("turn") == "accept_message"
    assert parent("wait_for_approval") == "turn"
    assert parent("process execution_request") == "accept_message"
    assert parent("invoke_agent executor") == "process execution_request"
    assert parent("execute_tool act") == "invoke_agent executor"
    assert parent("verify") == "process execution_request"

    turn = attributes(spans.named("turn"))
    assert turn["gen_ai.conversation.id"] == str(session.pk)
    assert turn["silas.deployment.id"] == str(desk.deployment.pk)
    assert turn["silas.outcome"] == "answered"
    chat = [attributes(span) for span in ours if span.name == "chat gpt-4o-mini"]
    assert len(chat) == 4
    assert chat[0]["gen_ai.provider.name"] == "openai"
    assert chat[0]["gen_ai.usage.input_tokens"] == 100
    assert chat[0]["gen_ai.usage.output_tokens"] == 20
    tool = attributes(spans.named("execute_tool act"))
    assert tool["gen_ai.tool.name"] == "act"
    assert tool["silas.outcome"] == "done"
    checked = attributes(spans.named("verify"))
    assert checked["silas.check.passed"] is True
    assert checked["silas.check.count"] == 1
    wait = spans.named("wait_for_approval")
    assert attributes(wait)["silas.outcome"] == "decided"
    card = desk.card(item_of(session))
    assert wait.start_time == int(card.created_at.timestamp() * 1_000_000_000)
    assert card.settled_at is not None
    assert wait.end_time == int(card.settled_at.timestamp() * 1_000_000_000)


def test_nothing_that_a_visitor_said_is_in_a_span_or_log_line(
    desk: Desk, provider: FakeOpenAI, approver: Any, spans: Spans, log_lines: io.StringIO
) -> None:
    one_wish(desk, approver)
    refused = write(make_channel(desk.deployment), f"This is forbidden, {WORD} {EMAIL}")
    answer(refused)
    with tracing.span(tracing.SpanName.TURN):
        logging.getLogger("apps.test").warning("the_search_finds_lines")
    exported = [span.to_json() for span in spans.all]
    assert len(exported) > 15
    told = log_lines.getvalue()
    assert "the_search_finds_lines" in told
    for marker in MARKERS:
        assert not [text for text in exported if marker in text]
        assert marker not in told
    stopped = [attributes(span) for span in spans.all if span.name == "check_gates"]
    assert "block" in {each["silas.outcome"] for each in stopped}


def test_model_that_fails_marks_its_span_with_a_code(desk: Desk, monkeypatch: pytest.MonkeyPatch, spans: Spans) -> None:
    monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", True)
    with serving_in_thread([Reply(status=500)]) as fake:
        monkeypatch.setenv("OPENAI_BASE_URL", fake.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-house")
        answer(write(make_channel(desk.deployment), "Hello there"))
    proxy = spans.named("invoke_agent proxy")
    assert attributes(proxy)["error.type"] == "http_500"
    assert attributes(proxy)["gen_ai.request.model"] == "gpt-4o-mini"
    assert attributes(proxy)["gen_ai.response.model"] == "builtin:grounded"
    assert proxy.status.status_code == StatusCode.ERROR
    assert attributes(spans.named("turn"))["silas.outcome"] == "answered"


def test_refused_message_to_a_channel_marks_its_span(desk: Desk, recorder: Recorder, spans: Spans) -> None:
    with tenant_scope(desk.tenant):
        desk.deployment.model_names = {}
        desk.deployment.save(update_fields=["model_names"])
    recorder.failures.append(ports.NotSent(f"no {WORD}"))
    answer(write(make_channel(desk.deployment), "Hello there"))
    carry_out_kinds(desk.tenant, Kind.CHANNEL_DELIVERY)
    failed = next(attributes(span) for span in spans.all if span.name == "send_message")
    assert failed["error.type"] == "NotSent"
    assert not [span for span in spans.all if WORD in span.to_json()]


def test_log_lines_of_a_turn_carry_its_trace(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, spans: Spans, log_lines: io.StringIO
) -> None:
    async def broken(state: Any) -> None:
        raise RuntimeError(WORD)

    monkeypatch.setattr("apps.sessions.turn.run", broken)
    answer(write(make_channel(desk.deployment), "Hello there"))
    (line,) = [json.loads(line) for line in log_lines.getvalue().splitlines() if "turn_failed" in line]
    turn = spans.named("turn")
    assert line["trace_id"] == f"{turn.context.trace_id:032x}"
    assert attributes(turn)["error.type"] == "RuntimeError"
    assert attributes(turn)["silas.outcome"] == "failed"
    assert WORD not in turn.to_json()


def test_line_for_people_names_its_trace_as_a_search_for_it_does(spans: Spans) -> None:
    with tracing.span(SpanName.TURN):
        line = logs.text_formatter().format(logging.makeLogRecord({"name": "apps.test", "msg": "a_line"}))
    assert line.endswith(f" [apps.test] trace_id={spans.named('turn').context.trace_id:032x}")


def test_without_traces_a_message_has_a_plain_id_and_log_lines_no_trace(desk: Desk, log_lines: io.StringIO) -> None:
    session = write(make_channel(desk.deployment), "Hello there")
    logging.getLogger("apps.test").warning("a_line")
    with tenant_scope(desk.tenant):
        row = QueueMessage.objects.get(kind=Kind.USER_MESSAGE, scope_id=str(session.pk))
    assert len(row.trace_id) == 36
    assert "trace_id" not in log_lines.getvalue()


# -- sending -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with receiving() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.url)
        yield found


def test_without_an_address_nothing_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in traces.ENDPOINTS:
        monkeypatch.delenv(name, raising=False)
    assert traces.start("web") is None
    assert not tracing.is_on()


def test_what_is_left_is_sent_when_a_process_stops(receiver: Receiver) -> None:
    assert traces.start("web") is not None
    with tracing.span(tracing.SpanName.TURN, turn=3):
        pass
    traces.stop()
    assert not tracing.is_on()
    ((resource, span),) = receiver.spans()
    assert resource["service.name"] == "silas-web"
    assert resource["service.instance.id"].endswith(f":{os.getpid()}")
    assert span.name == "turn"


def test_sampler_is_the_sdks_own_setting(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    traces.start("web")
    with tracing.span(tracing.SpanName.TURN):
        pass
    traces.stop()
    assert receiver.received == []


def test_process_ends_soon_while_the_collector_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    traces.start("web")
    for _ in range(2000):
        with tracing.span(tracing.SpanName.TURN):
            pass
    begun = time.monotonic()
    traces.stop()
    assert time.monotonic() - begun < 5


def test_real_worker_sends_what_its_children_did_when_it_ends(
    tenant: Any, tmp_path: Path, approver: Any, receiver: Receiver
) -> None:
    """Spans and metrics leave the children only when they end: nothing is due before."""
    desk = make_desk(tenant, tmp_path)
    trace_id = 0xABCDEF
    proposal = desk.propose(trace_id=f"00-{trace_id:032x}-{9:016x}-01")
    assert proposal.work_item_id is not None
    item = desk.item(proposal.work_item_id)
    desk.decide(item, approver)
    slow = {"OTEL_BSP_SCHEDULE_DELAY": "600000", "OTEL_METRIC_EXPORT_INTERVAL": "600000", "SILAS_LOG": "json"}
    argv = [sys.executable, "-m", "celery", "-A", "silas_platform", "worker", "--concurrency", "1"]
    with (tmp_path / "log").open("wb") as said:
        env = {**for_program(os.environ, "worker"), **slow}
        worker = nursery.start([*argv, "--without-gossip"], cwd=ROOT, env=env, stdout=said, stderr=said)
        try:
            give_up = time.monotonic() + 240
            while desk.item(item.pk).status != WorkItemStatus.DONE and time.monotonic() < give_up:
                wake(Worker.WORK)
                time.sleep(0.5)
        finally:
            worker.terminate()
            worker.wait(60)
    assert desk.item(item.pk).status == WorkItemStatus.DONE, (tmp_path / "log").read_text()[-3000:]
    sent = [(resource, span) for resource, span in receiver.spans() if int.from_bytes(span.trace_id) == trace_id]
    assert {"process execution_request", "execute_tool act", "verify"} <= {span.name for _, span in sent}
    for resource, _ in sent:
        assert resource["service.name"] == "silas-worker"
        assert not resource["service.instance.id"].endswith(f":{worker.pid}")
    assert ("silas-worker", "queue_wait") in receiver.metrics()
    assert ("silas-worker", "guarded_call_duration") in receiver.metrics()
