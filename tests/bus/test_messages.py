"""Only messages that say what their kind says, where it belongs, get onto a queue."""

from __future__ import annotations

from itertools import product
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
from tests.factories.bus import lease_any

ERROR = {"error_code": "timeout", "retryable": True, "origin_agent": "executor", "attempt_number": 2, "detail": "late"}
HEADERS = {name: ERROR[name] for name in ("error_code", "retryable", "origin_agent", "attempt_number")}
ASK = {"key": "k", "round": 1}
WITHIN = ResearchConstraints(return_format="a list")
TASK = uuid4()

# One message of each kind as its sender means it: queue, sender and what it carries.
GOOD: dict[str, tuple[str, str, dict[str, Any]]] = {
    **{kind: (queue, "runtime", {}) for kind, queue in QUEUE_OF.items()},
    "user_message": ("proxy", "user", {"payload": {"seq": 1}}),
    "plan_request": ("planner", "proxy", {"content": "move house"}),
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


def test_kind_on_a_queue_that_is_not_its_own_is_refused(tenant: Any) -> None:
    misplaced = [(kind, queue) for kind, queue in product(Kind, Queue) if queue not in rules.ROUTES[kind].queues]
    accepted = [(k, queue) for k, queue in misplaced if refusal(tenant, k, queue=queue) != "kind_not_on_queue"]
    assert accepted == []


def test_kind_from_a_sender_who_may_not_send_it_is_refused(tenant: Any) -> None:
    forged = [(kind, sender) for kind, sender in product(Kind, Sender) if sender not in rules.ROUTES[kind].senders]
    accepted = [(k, sender) for k, sender in forged if refusal(tenant, k, sender=sender) != "kind_not_from_sender"]
    assert accepted == []


@pytest.mark.parametrize(
    ("kind", "missing"),
    [
        ("plan_request", "content"),
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
        ("execution_status", {"status": "done", "budget_remaining_usd": -1}),
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


@pytest.mark.parametrize("status", FAILING)
def test_status_that_failed_without_a_code_is_refused(tenant: Any, status: str) -> None:
    assert refusal(tenant, "execution_status", payload={"status": status}) == "error_code_missing"


@pytest.mark.parametrize("status", FAILING)
def test_status_that_failed_with_a_code_is_queued(tenant: Any, status: str) -> None:
    sent = send(tenant, "execution_status", payload={"status": status}, **HEADERS)
    assert sent.error_code == "timeout"


@pytest.mark.parametrize("status", sorted(set(ExecutionStatus) - set(FAILING)))
def test_status_that_is_well_needs_no_code(tenant: Any, status: str) -> None:
    assert send(tenant, "execution_status", payload=StatusPayload(status=status)).error_code == ""


@pytest.mark.parametrize("header", ["retryable", "origin_agent", "attempt_number"])
def test_error_code_without_its_other_headers_is_refused(tenant: Any, header: str) -> None:
    headers = {**HEADERS, header: None}
    assert refusal(tenant, "execution_status", payload={"status": "failed"}, **headers) == "error_headers_missing"


def test_error_code_without_an_error_payload_is_refused(tenant: Any) -> None:
    assert refusal(tenant, "research_result", **HEADERS) == "payload_wrong"


@pytest.mark.parametrize("kind", ["research_result", "plan_result", "planner_guidance", "system_event"])
def test_error_takes_the_place_of_a_result(tenant: Any, kind: str) -> None:
    sent = send(tenant, kind, content="", plan_markdown=None, payload=ErrorPayload(**ERROR))
    assert (sent.error_code, sent.retryable, sent.origin_agent, sent.attempt_number) == (
        "timeout",
        True,
        "executor",
        2,
    )


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
        ("artifacts", {"a": b"bytes"}),
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


def test_refusal_repeats_nothing_of_the_message(tenant: Any) -> None:
    with pytest.raises(MessageRefused) as refused:
        send(tenant, "system_event", content="my secret\0", payload={"status": "my secret"})
    assert "secret" not in str(refused.value)


def test_refused_message_leaves_no_row(tenant: Any) -> None:
    refusal(tenant, "user_message", payload=None)
    with tenant_scope(tenant):
        assert not QueueMessage.objects.exists()


def test_every_field_comes_back_as_it_was_sent(tenant: Any) -> None:
    parent, token = uuid4(), uuid4()
    sent = {
        "parent_task_id": parent,
        "attempt_number": 3,
        "urgency": "needs_attention",
        "plan_markdown": "# Plan\n",
        "artifacts": {"report.txt": {"bytes": 3}},
    }
    send(tenant, "research_request", approval_token=token, taint="auth", **sent)
    with tenant_scope(tenant):
        lease = lease_any("executor", consumer="test")
    assert lease is not None
    read = {name: getattr(lease.message, name) for name in sent}
    assert (read, lease.message.constraints, lease.message.approval_token_id) == (sent, WITHIN, token)


def test_urgency_unless_told_is_informational(tenant: Any) -> None:
    assert send(tenant, "execution_request").urgency == "informational"


def test_constraints_allow_only_what_research_may_use() -> None:
    with pytest.raises(ValidationError):
        ResearchConstraints(return_format="x", tools_allowed=("shell_exec",))


def test_message_cannot_be_changed() -> None:
    message = Message(
        queue="runtime", kind="system_event", message_id="m", trace_id="t", scope_id="s", sender="runtime"
    )
    with pytest.raises(ValidationError):
        message.content = "other"


def change_row(tenant: Any, **values: Any) -> None:
    with tenant_scope(tenant):
        QueueMessage.objects.update(**values)


def test_error_without_headers_written_around_the_service_is_refused_by_the_database(tenant: Any) -> None:
    send(tenant, "execution_request")
    with pytest.raises(IntegrityError):
        change_row(tenant, error_code="timeout")


def test_failing_status_without_code_written_around_the_service_is_refused_by_the_database(tenant: Any) -> None:
    send(tenant, "execution_status")
    with pytest.raises(IntegrityError):
        change_row(tenant, payload={"status": "stuck"})


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
