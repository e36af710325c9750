"""Only messages that say what their kind says, where it belongs, get onto a queue."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from apps.bus import rules, services
from apps.bus.enums import FAILING, QUEUE_OF, ExecutionStatus, FailureCode, Kind, Queue, Sender
from apps.bus.models import QueueMessage
from apps.bus.schemas import ErrorPayload, Message, MessageRefused, ResearchConstraints, StatusPayload
from kernel.tenancy import tenant_scope
from tests.bus.conftest import held

ERROR = {"error_code": "timeout", "retryable": True, "origin_agent": "executor", "attempt_number": 2, "detail": "late"}
HEADERS = {name: ERROR[name] for name in ("error_code", "retryable", "origin_agent", "attempt_number")}
ASK = {"key": "k", "round": 1}
WITHIN = ResearchConstraints(return_format="a list")
TASK = uuid4()

# One message of each kind as its sender means it: queue, sender and what it carries.
GOOD: dict[str, tuple[str, str, dict[str, Any]]] = {
    **{kind: (queue, "runtime", {}) for kind, queue in QUEUE_OF.items()},
    "user_message": ("proxy", "user", {"payload": {"seq": 1}}),
    "plan_result": ("trusted", "planner", {"plan_markdown": "# Plan"}),
    "research_request": ("executor", "planner", {"content": "who?", "payload": ASK, "constraints": WITHIN}),
    "research_result": ("planner", "executor", {"content": "she", "payload": {"key": "k", "tokens": 3}}),
    "execution_status": ("trusted", "runtime", {"task_id": TASK, "payload": {"status": "running"}}),
    "consult_planner": ("planner", "runtime", {"task_id": TASK, "payload": ERROR}),
    "planner_guidance": ("runtime", "planner", {"task_id": TASK, "content": "try", "payload": {"answers": "m-1"}}),
    "replan_request": ("planner", "runtime", {"task_id": TASK, "payload": {"depth": 1}}),
    "system_event": ("runtime", "runtime", {"payload": {"anything": [1]}}),
    "execution_request": ("executor", "runtime", {"task_id": TASK}),
    "autonomous_session": ("executor", "runtime", {"payload": {"session": str(TASK)}}),
    "review_owed": ("trusted", "runtime", {"payload": {"event": "ask", "subject": str(TASK)}}),
    "connection_owed": (
        "trusted",
        "runtime",
        {"payload": {"event": "failed", "subject": str(TASK), "permissions": []}},
    ),
}


def send(tenant: Any, kind: str, **changes: Any) -> QueueMessage:
    queue, sender, carried = GOOD[kind]
    words = {"sender": sender, "scope_id": "s", **carried, **changes}
    with tenant_scope(tenant):
        return services.send_message(words.pop("queue", queue), kind=kind, **words)


def refusal(tenant: Any, kind: str, **changes: Any) -> str:
    with pytest.raises(MessageRefused) as refused:
        send(tenant, kind, **changes)
    return refused.value.code


@pytest.mark.parametrize("kind", Kind.values)
def test_message_as_its_kind_should_be_is_queued(tenant: Any, kind: str) -> None:
    assert send(tenant, kind).state == "queued"


def test_kind_on_another_queue_or_from_another_sender_is_refused(tenant: Any) -> None:
    for kind, route in rules.ROUTES.items():
        for queue in set(Queue) - set(route.queues):
            assert refusal(tenant, kind, queue=queue) == "kind_not_on_queue"
        for sender in set(Sender) - set(route.senders):
            assert refusal(tenant, kind, sender=sender) == "kind_not_from_sender"


@pytest.mark.parametrize(
    ("kind", "missing"),
    [
        ("plan_result", "plan_markdown"),
        ("research_request", "content"),
        ("research_request", "constraints"),
        ("execution_status", "task_id"),
        ("consult_planner", "task_id"),
        ("planner_guidance", "task_id"),
        ("planner_guidance", "content"),
        ("replan_request", "task_id"),
        ("execution_request", "task_id"),
    ],
)
def test_message_without_what_its_kind_needs_is_refused(tenant: Any, kind: str, missing: str) -> None:
    empty = "" if missing == "content" else None
    assert refusal(tenant, kind, **{missing: empty}) == f"{missing}_missing"


@pytest.mark.parametrize(
    "kind",
    ["user_message", "research_request", "research_result", "execution_status", "planner_guidance", "replan_request"],
)
def test_message_without_its_payload_is_refused(tenant: Any, kind: str) -> None:
    assert refusal(tenant, kind, payload=None) == "payload_missing"


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("user_message", {"seq": 0}),
        ("user_message", {"seq": "first"}),
        ("user_message", {"seq": 1, "more": 1}),
        ("user_message", ERROR),
        ("execution_status", {"status": "perfect"}),
        ("execution_status", {"status": "done", "attempt_number": -1}),
        ("execution_status", ERROR),
        ("research_request", {"key": ""}),
        ("research_result", {"key": "k", "tokens": -1}),
        ("consult_planner", {"why": "stuck"}),
        ("planner_guidance", {"answers": ""}),
        ("replan_request", {"depth": 0}),
        ("execution_request", {"approved": True}),
    ],
)
def test_payload_of_another_shape_is_refused(tenant: Any, kind: str, payload: dict[str, Any]) -> None:
    assert refusal(tenant, kind, payload=payload) == "payload_wrong"


@pytest.mark.parametrize("part", ["retryable", "origin_agent", "attempt_number", "detail"])
def test_error_payload_without_one_of_its_parts_is_refused(tenant: Any, part: str) -> None:
    broken = {name: value for name, value in ERROR.items() if name != part}
    assert refusal(tenant, "system_event", payload=broken) == "payload_wrong"


@pytest.mark.parametrize("status", ExecutionStatus)
def test_status_says_why_if_it_failed(tenant: Any, status: ExecutionStatus) -> None:
    payload = StatusPayload(status=status)
    if status not in FAILING:
        assert send(tenant, "execution_status", payload=payload).error_code == ""
        return
    assert refusal(tenant, "execution_status", payload=payload) == "error_code_missing"
    assert send(tenant, "execution_status", payload=payload, **HEADERS).error_code == "timeout"


@pytest.mark.parametrize("header", ["retryable", "origin_agent", "attempt_number"])
def test_error_code_without_its_other_headers_or_a_payload_is_refused(tenant: Any, header: str) -> None:
    headers = {**HEADERS, header: None}
    assert refusal(tenant, "execution_status", payload={"status": "failed"}, **headers) == "error_headers_missing"
    assert refusal(tenant, "research_result", **HEADERS) == "payload_wrong"


@pytest.mark.parametrize("kind", ["research_result", "plan_result", "planner_guidance", "system_event"])
def test_error_takes_the_place_of_a_result(tenant: Any, kind: str) -> None:
    sent = send(tenant, kind, content="", plan_markdown=None, payload=ErrorPayload(**ERROR))
    assert {name: getattr(sent, name) for name in HEADERS} == HEADERS


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kind", "gossip"),
        ("sender", "stranger"),
        ("taint", "holy"),
        ("queue", "attic"),
        ("urgency", "now"),
        ("error_code", "bad_luck"),
        ("origin_agent", "user"),
        ("attempt_number", -1),
        ("attempt_number", 40_000),
        ("task_id", "not-an-id"),
        ("approval_token", "not-an-id"),
        ("scope_id", ""),
        ("scope_id", "x" * 65),
        ("trace_id", "x" * 65),
        ("message_id", "x" * 129),
        ("content", "x" * 64_001),
        ("content", "a\0b"),
        ("content", "\ud800"),
        ("trace_id", "\0"),
        ("payload", {"a": "\0"}),
        ("payload", {"a": "\ud800"}),
        ("payload", {"a": float("nan")}),
        ("payload", {"a": object()}),
        ("payload", {"a": "x" * 256_001}),
        ("payload", [1]),
        ("whisper", "psst"),
    ],
)
def test_field_that_cannot_be_is_refused(tenant: Any, field: str, value: Any) -> None:
    given: dict[str, Any] = {"kind": "system_event", "scope_id": "s", "sender": "runtime", "queue": "runtime"}
    given[field] = value
    with tenant_scope(tenant), pytest.raises(MessageRefused) as refused:
        services.send_message(given.pop("queue"), **given)
    assert refused.value.code == "field_wrong"


def test_backslash_that_only_looks_like_a_nul_is_kept(tenant: Any) -> None:
    text = {"a": "\\u0000"}
    assert send(tenant, "system_event", payload=text).payload == text


def test_refusal_repeats_nothing_of_the_message_and_leaves_no_row(tenant: Any) -> None:
    with pytest.raises(MessageRefused) as refused:
        send(tenant, "system_event", content="my secret\0", payload={"status": "my secret"})
    assert "secret" not in str(refused.value)
    with tenant_scope(tenant):
        assert not QueueMessage.objects.exists()


def test_every_field_comes_back_as_it_was_sent(tenant: Any) -> None:
    parent, token = uuid4(), uuid4()
    sent = {
        "parent_task_id": parent,
        "attempt_number": 3,
        "urgency": "needs_attention",
        "plan_markdown": "# Plan\n",
    }
    send(tenant, "research_request", approval_token=token, taint="auth", **sent)
    lease = held(tenant)
    read = {name: getattr(lease.message, name) for name in sent}
    assert read == sent
    assert lease.message.constraints == WITHIN
    assert lease.message.approval_token_id == token


def test_constraints_allow_only_what_research_may_use_and_a_message_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        ResearchConstraints(return_format="x", tools_allowed=("shell_exec",))
    message = Message(
        queue="runtime", kind="system_event", message_id="m", trace_id="t", scope_id="s", sender="runtime"
    )
    with pytest.raises(ValidationError):
        message.content = "other"


@pytest.mark.parametrize(
    ("kind", "values"),
    [("execution_request", {"error_code": "timeout"}), ("execution_status", {"payload": {"status": "stuck"}})],
    ids=["error without headers", "failing status without a code"],
)
def test_row_that_does_not_say_why_is_refused_by_the_database(tenant: Any, kind: str, values: dict[str, Any]) -> None:
    assert send(tenant, kind).urgency == "informational"
    with pytest.raises(IntegrityError), tenant_scope(tenant):
        QueueMessage.objects.update(**values)


@given(
    kind=st.sampled_from(Kind),
    queue=st.sampled_from(Queue),
    sender=st.sampled_from(Sender),
    payload=st.none() | st.just(ERROR) | st.sampled_from([carried.get("payload") for _, _, carried in GOOD.values()]),
    error_code=st.none() | st.sampled_from(FailureCode),
)
def test_message_without_fault_belongs_where_it_is_and_says_why_it_failed(
    kind: Kind, queue: Queue, sender: Sender, payload: Any, error_code: FailureCode | None
) -> None:
    message = Message(
        queue=queue,
        kind=kind,
        message_id="m",
        trace_id="t",
        scope_id="s",
        sender=sender,
        payload=payload,
        error_code=error_code,
        task_id=TASK,
        content="said",
        plan_markdown="# Plan",
        constraints=WITHIN,
        retryable=False,
        origin_agent=Sender.EXECUTOR,
        attempt_number=1,
    )
    if rules.fault_of(message) is None:
        explained = kind == Kind.EXECUTION_STATUS or (error_code is None) == (not rules.is_error(message))
        assert queue in rules.ROUTES[kind].queues and sender in rules.ROUTES[kind].senders and explained
