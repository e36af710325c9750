"""A2A with the client of `a2a-sdk` against a running server, and raw requests for what no honest client sends."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import httpx
import httpx2
import pytest
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import a2a_pb2 as wire
from a2a.utils.errors import (
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from google.protobuf.json_format import MessageToDict, ParseDict

from apps.inbox import handoff
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.tenants.enums import KeyScope
from apps.tenants.models import ApiKey
from apps.visitors.prompts import Question, ask_visitor
from kernel.tenancy import in_thread, tenant_scope
from tests.approvals.test_client_keys import Program
from tests.events.conftest import Web
from tests.factories.pauses import WAITING, answer, gate_card
from tests.factories.tenants import make_deployment, make_tenant
from tests.protocols.conftest import WAIT_SECONDS, Agent, make_agent
from tests.protocols.test_agui import hold_answers


def message(text: str = "", **fields: Any) -> dict[str, Any]:
    parts = [{"text": text}] if text else []
    return {"messageId": str(uuid4()), "role": "ROLE_USER", "parts": parts, **fields}


class Other:
    """The other agent."""

    def __init__(self, agent: Agent) -> None:
        self.base = agent.url.removesuffix("/agui")
        self.key, self.actor = agent.key, agent.actor
        self.headers = {"Authorization": f"Bearer {agent.key}"}

    async def _client(self, http: httpx.AsyncClient, *, streaming: bool) -> Any:
        card = await A2ACardResolver(http, self.base).get_agent_card()
        return ClientFactory(ClientConfig(streaming=streaming, httpx_client=http)).create(card)

    def ask(self, method: str, request: Any, *, streaming: bool = True) -> list[dict[str, Any]]:
        """Every answer of one call of the sdk's client."""

        async def call() -> list[dict[str, Any]]:
            async with httpx.AsyncClient(headers=self.headers, timeout=WAIT_SECONDS) as http:
                client = await self._client(http, streaming=streaming)
                answered = getattr(client, method)(request)
                if isinstance(answered, AsyncIterator):
                    return [MessageToDict(each) async for each in answered]
                return [MessageToDict(await answered)]

        return asyncio.run(call())

    def send(self, said: dict[str, Any], *, streaming: bool = False, **params: Any) -> list[dict[str, Any]]:
        request = ParseDict({"message": said, **params}, wire.SendMessageRequest())
        return self.ask("send_message", request, streaming=streaming)

    def task(self, said: dict[str, Any], **params: Any) -> dict[str, Any]:
        (answered,) = self.send(said, **params)
        return dict(answered["task"])

    def get(self, task_id: str) -> dict[str, Any]:
        return self.ask("get_task", wire.GetTaskRequest(id=task_id))[0]

    def rpc(self, body: Any, **headers: str) -> Any:
        address = f"{self.base}/a2a"
        return httpx2.post(address, json=body, headers={**self.headers, **headers}, timeout=WAIT_SECONDS)

    def error(self, method: str, params: Any, **headers: str) -> tuple[int, str]:
        answered = self.rpc({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, **headers)
        assert answered.status_code == 200
        problem = json.loads(answered.text.removeprefix("data: "))["error"]
        return problem["code"], problem["data"][0]["reason"] if "data" in problem else ""


@pytest.fixture
def other(web: Web, deployment: Any) -> Other:
    return Other(make_agent(web, deployment, KeyScope.SESSIONS_WRITE))


def state(task: dict[str, Any]) -> str:
    return str(task["status"]["state"]).removeprefix("TASK_STATE_")


def words(task: dict[str, Any]) -> list[str]:
    return [artifact["parts"][0]["text"] for artifact in task.get("artifacts", ())]


def waits_for(task: dict[str, Any]) -> list[dict[str, Any]]:
    return [part["data"] for part in task["status"]["message"]["parts"] if "data" in part]


# -- what it can't reach ---------------------------------------------------------------------------------------------


def test_foreign_and_disabled_deployments_are_not_found(web: Web, deployment: Any, tenant: Any) -> None:
    off = make_deployment(tenant, enabled=False)
    for agent in (make_agent(web, deployment, tenant=make_tenant()), make_agent(web, off)):
        other = Other(agent)
        card = httpx2.get(f"{other.base}/.well-known/agent-card.json", headers=other.headers)
        assert card.status_code == 404
        assert other.error("SendMessage", {"message": message("Hi")}) == (-32001, "NOT_FOUND")


def test_only_keys_that_may_write_call(web: Web, deployment: Any) -> None:
    reader = Other(make_agent(web, deployment, KeyScope.SESSIONS_READ))
    assert reader.rpc({}).status_code == 403
    assert httpx2.post(f"{reader.base}/a2a", json={}).status_code == 401
    assert httpx2.get(f"{reader.base}/.well-known/agent-card.json").status_code == 401


def test_contexts_and_tasks_of_others_are_not_found(web: Web, deployment: Any, tenant: Any, other: Other) -> None:
    mine = other.task(message("Hello"))
    stranger = Other(make_agent(web, deployment))
    foreign = Other(make_agent(web, make_deployment(make_tenant())))
    elsewhere = Other(make_agent(web, make_deployment(tenant)))
    for caller in (stranger, foreign, elsewhere):
        said = message("Hi", contextId=mine["contextId"])
        assert caller.error("SendMessage", {"message": said})[0] == -32001
        for method in ("GetTask", "SubscribeToTask", "CancelTask"):
            assert caller.error(method, {"id": mine["id"]})[0] == -32001
    with tenant_scope(tenant):
        assert ChronicleEntry.objects.filter(sender="visitor").count() == 1


@pytest.mark.parametrize("task_id", ["", "x", None, 7, f"{uuid4().hex}-1", "0" * 32 + "-" + "9" * 13])
def test_task_that_never_was_is_not_found(other: Other, task_id: Any) -> None:
    assert other.error("GetTask", {"id": task_id})[0] == -32001


def test_answer_of_ours_is_no_task(other: Other) -> None:
    task = other.task(message("Hello"))
    place = int(task["id"].partition("-")[2])
    assert other.error("GetTask", {"id": f"{UUID(task['contextId']).hex}-{place + 1}"})[0] == -32001


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (message("x" * 4001), -32602),
        (message("x" * 900_000), -32602),
        (message("\x00"), -32602),
        (message("  "), -32602),
        (message(), -32602),
        (message("Hi", messageId=""), -32602),
        (message("Hi", role="ROLE_AGENT"), -32602),
        (message("Hi", parts="Hi"), -32602),
        (message("Hi", contextId="nowhere"), -32602),
        (message("Hi", parts=[{"raw": base64.b64encode(b"x").decode()}]), -32005),
        (message("Hi", parts=[{"url": "file:///etc/passwd"}]), -32005),
        ("Hi", -32602),
    ],
)
def test_bad_message_is_refused_and_stored_nowhere(other: Other, tenant: Any, said: Any, code: int) -> None:
    assert other.error("SendMessage", {"message": said})[0] == code
    with tenant_scope(tenant):
        assert not ChronicleEntry.objects.exists()


def test_what_is_no_request_is_refused(other: Other) -> None:
    for body in ([], {}, {"jsonrpc": "1.0", "method": "GetTask"}, {"jsonrpc": "2.0", "method": 1}):
        assert other.rpc(body).json()["error"]["code"] == -32600
    assert other.error("Reboot", {})[0] == -32601
    assert other.error("GetTask", {"id": "x"}, **{"A2A-Version": "0.3"})[0] == -32009
    assert other.rpc({"jsonrpc": "2.0", "method": "GetTask", "pad": "x" * 1_100_000}).status_code == 413


def test_key_without_the_scope_decides_no_card(deployment: Any, tenant: Any, approver: Any, other: Other) -> None:
    hold_answers(deployment)
    task = other.task(message("Hello"))
    body = {"id": str(gate_card(tenant).pk), **Program(tenant, approver).body(gate_card(tenant))}
    said = message(taskId=task["id"], parts=[{"data": body}])
    assert other.error("SendMessage", {"message": said}) == (-32000, "FORBIDDEN_SCOPE")
    assert gate_card(tenant).is_open


def test_card_of_another_conversation_is_not_found(deployment: Any, tenant: Any, other: Other) -> None:
    hold_answers(deployment)
    other.task(message("Hello"))
    first = gate_card(tenant)
    task = other.task(message("Hello"))
    said = message(taskId=task["id"], parts=[{"data": {"id": str(first.pk)}}])
    assert other.error("SendMessage", {"message": said})[0] == -32001


# -- what it is told -------------------------------------------------------------------------------------------------


def test_card_says_where_and_how_to_call(other: Other, deployment: Any) -> None:
    card = httpx2.get(f"{other.base}/.well-known/agent-card.json", headers=other.headers).json()
    assert card["name"] == deployment.title
    assert card["capabilities"]["streaming"] is True
    (interface,) = card["supportedInterfaces"]
    assert interface == {"url": f"{other.base}/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}


def test_task_is_completed_with_the_recorded_answer(other: Other, tenant: Any) -> None:
    task = other.task(message("Hello"))
    assert state(task) == "COMPLETED"
    with tenant_scope(tenant):
        said = ChronicleEntry.objects.get(sender="bot", kind="message")
        assert ChatSession.objects.get().started_by == other.actor
    assert words(task) == [said.text]
    assert words(other.get(task["id"])) == [said.text]


def test_stream_ends_with_the_state(other: Other) -> None:
    updates = other.send(message("Hello"), streaming=True)
    assert list(updates[0]) == ["task"]
    assert state(updates[0]["task"]) == "WORKING"
    pieces = [update["artifactUpdate"] for update in updates if "artifactUpdate" in update]
    assert pieces[-1]["lastChunk"] is True
    assert state(updates[-1]["statusUpdate"]) == "COMPLETED"
    task = other.get(updates[0]["task"]["id"])
    assert words(task) == [pieces[-1]["artifact"]["parts"][0]["text"]]


def test_context_goes_on_and_an_earlier_task_keeps_its_own_answer(other: Other, tenant: Any) -> None:
    first = other.task(message("Hello"))
    second = other.task(message("Thank you", contextId=first["contextId"]))
    assert second["contextId"] == first["contextId"]
    assert second["id"] != first["id"]
    assert words(other.get(first["id"])) == words(first)
    with tenant_scope(tenant):
        assert ChatSession.objects.count() == 1


def test_first_message_that_is_sent_again_begins_nothing_new(other: Other, tenant: Any) -> None:
    said = message("Hello")
    assert other.task(said)["id"] == other.task(said)["id"]
    with tenant_scope(tenant):
        assert ChronicleEntry.objects.filter(sender="visitor").count() == 1


def test_task_can_be_read_later(other: Other) -> None:
    task = other.task(message("Hello"), configuration={"returnImmediately": True})
    assert state(task) in ("WORKING", "COMPLETED")
    give_up = time.monotonic() + 60
    while state(other.get(task["id"])) == "WORKING" and time.monotonic() < give_up:
        time.sleep(0.1)
    assert state(other.get(task["id"])) == "COMPLETED"


def test_held_answer_requires_an_approval_and_subscribers_are_told_once_it_is_given(
    deployment: Any, tenant: Any, owner: Any, other: Other
) -> None:
    hold_answers(deployment)
    task = other.task(message("Hello"))
    card = gate_card(tenant)
    assert state(task) == "AUTH_REQUIRED"
    assert words(task) == [WAITING]
    assert [each["id"] for each in waits_for(task)] == [str(card.pk)]
    assert card.payload["holds"]["response"] not in str(task)

    async def both() -> list[dict[str, Any]]:
        subscribed = asyncio.create_task(
            asyncio.to_thread(other.ask, "subscribe", wire.SubscribeToTaskRequest(id=task["id"]))
        )
        await asyncio.sleep(1)
        await in_thread(answer, tenant, owner, "approve")
        return await subscribed

    updates = asyncio.run(both())
    assert state(updates[-1]["statusUpdate"]) == "COMPLETED"
    assert words(other.get(task["id"])) == [WAITING, card.payload["holds"]["response"]]


def test_message_with_a_signature_decides_the_card(web: Web, deployment: Any, tenant: Any, approver: Any) -> None:
    hold_answers(deployment)
    program = Program(tenant, approver)
    with tenant_scope(tenant):
        ApiKey.objects.filter(pk=program.api_key.pk).update(scopes=["sessions:write", "cards:read", "cards:decide"])
    agent = make_agent(web, deployment)
    agent.key = program.key
    other = Other(agent)
    task = other.task(message("Hello"))
    card = gate_card(tenant)
    body = {"id": str(card.pk), **program.body(card)}
    forged = message(taskId=task["id"], parts=[{"data": {**body, "signature": "A" * 88}}])
    assert other.error("SendMessage", {"message": forged}) == (-32000, "SIGNATURE_INVALID")
    decided = other.task(message(taskId=task["id"], parts=[{"data": body}]))
    assert decided["id"] == task["id"]
    assert state(decided) == "COMPLETED"
    assert words(decided) == [WAITING, card.payload["holds"]["response"]]


def test_question_to_the_customer_requires_input(other: Other, tenant: Any, owner: Any) -> None:
    task = other.task(message("Hello"))
    options = [{"value": "red", "label": "The red one"}, {"value": "blue", "label": "The blue one"}]
    with tenant_scope(tenant):
        asked = Question(question="Which one?", options=options)
        ask_visitor(UUID(task["contextId"]), asked, actor=f"user:{owner.pk}", user=owner)
    waiting = other.get(task["id"])
    assert state(waiting) == "INPUT_REQUIRED"
    assert waits_for(waiting)[0]["options"][1]["value"] == "blue"
    wrong = message("green", taskId=task["id"])
    assert other.error("SendMessage", {"message": wrong})[0] == -32000
    answered = other.task(message("blue", taskId=task["id"]))
    assert state(answered) == "COMPLETED"
    with pytest.raises(UnsupportedOperationError):
        other.send(message("And now?", taskId=task["id"]))


def test_task_stays_open_while_a_person_answers(other: Other, tenant: Any, owner: Any) -> None:
    context_id = other.task(message("Hello"))["contextId"]
    with tenant_scope(tenant):
        handoff.take_over(UUID(context_id), owner)
    task = other.task(message("Anybody there?", contextId=context_id))
    assert state(task) == "WORKING"
    with tenant_scope(tenant):
        handoff.reply(UUID(context_id), owner, "Yes, me.")
    answered = other.get(task["id"])
    assert state(answered) == "COMPLETED"
    assert words(answered) == ["Yes, me."]


def listed(other: Other, **params: Any) -> dict[str, Any]:
    return dict(other.rpc({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": params}).json()["result"])


def ids(answer: dict[str, Any]) -> list[str]:
    return [task["id"] for task in answer["tasks"]]


def test_callers_list_only_their_own_tasks(web: Web, deployment: Any, tenant: Any, other: Other) -> None:
    mine = other.task(message("Hello"))
    stranger = Other(make_agent(web, deployment))
    elsewhere = Other(make_agent(web, make_deployment(tenant)))
    foreign = Other(make_agent(web, make_deployment(make_tenant())))
    for caller in (stranger, elsewhere, foreign):
        for params in ({}, {"contextId": mine["contextId"]}, {"status": "TASK_STATE_COMPLETED"}):
            assert listed(caller, **params) == {"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}
    assert Other(make_agent(web, deployment, tenant=make_tenant())).error("ListTasks", {})[0] == -32001
    assert ids(listed(other)) == [mine["id"]]


def test_tasks_are_listed_the_last_changed_first_in_pages(other: Other) -> None:
    tasks = [other.task(message("First"))]
    tasks.append(other.task(message("Second", contextId=tasks[0]["contextId"])))
    tasks.append(other.task(message("Third")))
    newest = [task["id"] for task in reversed(tasks)]
    (whole,) = other.ask("list_tasks", wire.ListTasksRequest())
    assert [task["id"] for task in whole["tasks"]] == newest
    assert {state(task) for task in whole["tasks"]} == {"COMPLETED"}
    assert not any("artifacts" in task or "history" in task for task in listed(other)["tasks"])
    first = listed(other, pageSize=2)
    assert first["totalSize"] == 3
    assert first["pageSize"] == 2
    assert ids(first) == newest[:2]
    rest = listed(other, pageSize=2, pageToken=first["nextPageToken"])
    assert ids(rest) == newest[2:]
    assert rest["nextPageToken"] == ""
    assert rest["totalSize"] == 3
    assert ids(listed(other, contextId=tasks[0]["contextId"])) == newest[1:]
    since = listed(other)["tasks"][0]["status"]["timestamp"]
    assert ids(listed(other, statusTimestampAfter=since)) == newest[:1]
    assert ids(listed(other, contextId=str(uuid4()))) == []


def test_listed_tasks_have_their_artifacts_and_message_on_request(other: Other) -> None:
    task = other.task(message("Hello"))
    (full,) = listed(other, includeArtifacts=True, historyLength=5)["tasks"]
    assert words(full) == words(task)
    assert [each["parts"] for each in full["history"]] == [[{"text": "Hello"}]]
    assert "history" not in other.get(task["id"])
    (read,) = other.ask("get_task", wire.GetTaskRequest(id=task["id"], history_length=1))
    assert read["history"] == full["history"]


def test_tasks_are_listed_by_state(other: Other, deployment: Any, tenant: Any, owner: Any) -> None:
    ended = other.task(message("Hello"))
    asked = other.task(message("Hello"))
    with tenant_scope(tenant):
        options = [{"value": "red", "label": "Red"}, {"value": "blue", "label": "Blue"}]
        question = Question(question="Which one?", options=options)
        ask_visitor(UUID(asked["contextId"]), question, actor=f"user:{owner.pk}", user=owner)
        handoff.take_over(UUID(other_context := ended["contextId"]), owner)
    working = other.task(message("Anybody?", contextId=other_context))
    hold_answers(deployment)
    held = other.task(message("Hello"))
    by_state = {
        "COMPLETED": [ended["id"]],
        "INPUT_REQUIRED": [asked["id"]],
        "WORKING": [working["id"]],
        "AUTH_REQUIRED": [held["id"]],
        "FAILED": [],
    }
    for name, expected in by_state.items():
        answer = listed(other, status=f"TASK_STATE_{name}")
        assert ids(answer) == expected, name
        assert answer["totalSize"] == len(expected)
        assert {state(task) for task in answer["tasks"]} <= {name}
    assert len(ids(listed(other, status="TASK_STATE_UNSPECIFIED"))) == 4


@pytest.mark.parametrize(
    "params",
    [
        {"pageSize": 0},
        {"pageSize": 101},
        {"pageSize": True},
        {"pageSize": "5"},
        {"pageToken": "x"},
        {"pageToken": 7},
        {"historyLength": -1},
        {"includeArtifacts": "yes"},
        {"status": "COMPLETED"},
        {"status": ["TASK_STATE_COMPLETED"]},
        {"statusTimestampAfter": "yesterday"},
        {"statusTimestampAfter": "2026-13-40T00:00:00Z"},
        {"statusTimestampAfter": "2026-01-01T00:00:00"},
        {"contextId": "x"},
        {"contextId": 7},
    ],
)
def test_wrong_filter_of_tasks_is_refused(other: Other, params: dict[str, Any]) -> None:
    assert other.error("ListTasks", params)[0] == -32602


def test_what_is_not_supported_says_so(other: Other) -> None:
    task = other.task(message("Hello"))
    with pytest.raises(TaskNotCancelableError):
        other.ask("cancel_task", wire.CancelTaskRequest(id=task["id"]))
    with pytest.raises(TaskNotFoundError):
        other.ask("cancel_task", wire.CancelTaskRequest(id="nothing"))
    with pytest.raises(UnsupportedOperationError):
        other.ask("subscribe", wire.SubscribeToTaskRequest(id=task["id"]))
    with pytest.raises(PushNotificationNotSupportedError):
        other.ask("create_task_push_notification_config", wire.TaskPushNotificationConfig(task_id=task["id"]))
