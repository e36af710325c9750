"""The loop by MCP: the SDK's own client against our server, in memory, over HTTP and over a pipe."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from opentelemetry.trace import INVALID_SPAN_CONTEXT, NonRecordingSpan, NoOpTracer

from apps.safety.mcp_server import PATH, create_server, surface_from_environment, tools, with_safety
from apps.safety.wire import OPERATIONS
from apps.tenants.enums import KeyScope
from apps.tenants.services import revoke_api_key
from kernel.tenancy import in_thread, tenant_scope
from tests.factories.safety import DANGER, HARMLESS, Agent, Api

ROOT = Path(__file__).parents[2]
STEP = {"element_name": "clerk", "next_action_hint": HARMLESS}
Session = Callable[[Client], Awaitable[Any]]


async def nobody(scope: Any, receive: Any, send: Any) -> None:
    raise AssertionError("not for the loop")


def in_memory(api: Api, session: Session, *, mode: str = "semantic", prefix: str = "") -> Any:
    async def run() -> Any:
        async with Client(create_server(mode, prefix, api.key)) as client:
            return await session(client)

    return asyncio.run(run())


def over_http(key: str, session: Session, mode: str = "auto") -> Any:
    async def run() -> Any:
        transport = httpx2.ASGITransport(app=with_safety(nobody))
        headers = {"authorization": f"Bearer {key}"}
        async with httpx2.AsyncClient(transport=transport, headers=headers) as http:
            way = streamable_http_client(f"http://silas.test{PATH}", http_client=http)
            async with Client(way, mode=mode) as client:  # type: ignore[arg-type]
                return await session(client)

    return asyncio.run(run())


def decoded(result: Any) -> dict[str, Any]:
    return json.loads(result.content[0].text)  # type: ignore[no-any-return]


async def loop(client: Client) -> list[dict[str, Any]]:
    begun = await client.call_tool(
        "mcp_aql_execute", {"operation": "execute_agent", "params": {"element_name": "clerk"}}
    )
    step = await client.call_tool("mcp_aql_create", {"operation": "record_execution_step", "params": STEP})
    return [decoded(begun), decoded(step)]


@pytest.fixture
def api(tenant: Any) -> Api:
    return Api(tenant)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_both_eras_go_through_the_loop_over_http(api: Api, mode: str) -> None:
    begun, step = over_http(api.key, loop, mode)
    assert begun["data"]["status"] == "running" and step["data"]["autonomy"]["continue"] is True


def test_tools_are_made_from_the_declarations(api: Api) -> None:
    async def listed(client: Client) -> Any:
        return (await client.list_tools()).tools

    found = {tool.name: tool for tool in in_memory(api, listed)}
    assert set(found) == {"mcp_aql_create", "mcp_aql_read", "mcp_aql_execute"}
    for operation in OPERATIONS.values():
        assert operation.name in (found[f"mcp_aql_{operation.endpoint}"].description or "")
    assert found["mcp_aql_read"].annotations.read_only_hint is True
    assert found["mcp_aql_execute"].annotations.destructive_hint is True


@pytest.mark.parametrize(
    ("mode", "names"),
    [
        ("single", {"x_mcp_aql"}),
        ("semantic", {"x_mcp_aql_create", "x_mcp_aql_read", "x_mcp_aql_execute"}),
        ("all", {"x_mcp_aql", "x_mcp_aql_create", "x_mcp_aql_read", "x_mcp_aql_execute"}),
    ],
)
def test_surface_and_prefix(mode: str, names: set[str]) -> None:
    assert set(tools(mode, "x_")) == names


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("MCP_AQL_ENDPOINT_MODE", "crude"),
        ("MCP_AQL_TOOL_PREFIX", "x"),
        ("MCP_AQL_TOOL_PREFIX", "X_"),
        ("MCP_AQL_TOOL_PREFIX", "a" * 19 + "_"),
    ],
)
def test_environment_that_makes_no_sense_is_refused(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(Exception, match="E_MCP"):
        surface_from_environment()


def test_single_tool_takes_every_operation(api: Api) -> None:
    async def ask(client: Client) -> Any:
        return await client.call_tool("mcp_aql", {"operation": "introspect", "params": {"query": "operations"}})

    assert decoded(in_memory(api, ask, mode="single"))["data"]["_protocol"]["mode"] == "single"


@pytest.mark.parametrize(
    ("asked", "code", "fault"),
    [
        ({"operation": "execute_agent", "params": {"element_name": "x"}}, "VALIDATION_WRONG_ENDPOINT", False),
        ({"operation": "record_execution_step", "params": {"x": 1}}, "VALIDATION_UNKNOWN_PARAM", False),
        ({"operation": "nothing"}, "NOT_FOUND_OPERATION", False),
        (
            {"operation": "verify_challenge", "params": {"challenge_id": "x", "code": "y"}},
            "TOKEN_INVALID",
            True,
        ),
    ],
)
def test_failure_is_an_answer_and_is_marked_as_the_contract_says(
    api: Api, asked: dict[str, Any], code: str, fault: bool
) -> None:
    async def ask(client: Client) -> Any:
        return await client.call_tool("mcp_aql_create", asked)

    result = in_memory(api, ask)
    assert decoded(result)["error"]["code"] == code
    assert result.is_error == fault


def test_block_over_rest_holds_over_mcp(api: Api) -> None:
    api.call("execute_agent", element_name="clerk")
    api.call("record_execution_step", **STEP | {"next_action_hint": DANGER})
    begun, step = over_http(api.key, loop)
    assert begun["error"]["code"] == "PERMISSION_DENIED" and step["data"]["autonomy"]["stopped"] is True


class Told(NonRecordingSpan):
    """Keeps what is written into it."""

    def __init__(self, told: list[str]) -> None:
        super().__init__(INVALID_SPAN_CONTEXT)
        self.told = told

    def keep(self, *said: Any, **more: Any) -> None:
        self.told.append(f"{said} {more}")

    set_attribute = set_attributes = add_event = record_exception = set_status = update_name = keep


class Spans(NoOpTracer):
    """Keeps what the SDK tells a tracer of every message."""

    def __init__(self) -> None:
        self.told: list[str] = []

    @contextmanager
    def start_as_current_span(self, name: str, *args: Any, **given: Any) -> Iterator[Any]:  # type: ignore[override]
        self.told.append(f"{name} {args} {given}")
        yield Told(self.told)


def test_code_is_in_no_span_frame_or_log_line(
    api: Api, tenant: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Right codes and wrong ones over both eras; what the SDK puts into spans is looked at too."""
    caplog.set_level(logging.DEBUG)
    spans, frames, shown = Spans(), [], []
    monkeypatch.setattr("mcp.shared._otel._tracer", spans)
    person = Agent(tenant, ref=f"api_key:{api.row.pk}")

    async def session(client: Client) -> None:
        async def ask(tool: str, operation: str, **params: str) -> Any:
            result = await client.call_tool(f"mcp_aql_{tool}", {"operation": operation, "params": params})
            frames.append(result.model_dump_json())
            return decoded(result)

        await ask("execute", "execute_agent", element_name="clerk")
        stop = await ask("create", "record_execution_step", **STEP | {"next_action_hint": DANGER})
        challenge = stop["data"]["autonomy"]["notifications"][0]["metadata"]["verificationId"]
        shown.extend([await in_thread(person.code), await in_thread(person.code)])
        await ask("create", "verify_challenge", challenge_id="x", code=shown[-2])
        await ask("execute", "verify_challenge", challenge_id=challenge, code=shown[-1])
        good = await ask("create", "verify_challenge", challenge_id=challenge, code=shown[-1])
        assert good["data"]["verified"] is True

    for era in ("auto", "legacy"):
        over_http(api.key, session, era)
    assert len(spans.told) > 10 and len(shown) == 4
    looked_at = [
        *spans.told,
        *frames,
        *(each.getMessage() for each in caplog.records if not each.name.startswith("mcp.client")),
    ]
    assert not [text for text in looked_at for code in shown if code in text or code.replace("-", "") in text]


def request(method: str, key: str, **headers: str) -> httpx2.Response:
    async def run() -> httpx2.Response:
        transport = httpx2.ASGITransport(app=with_safety(nobody))
        async with httpx2.AsyncClient(transport=transport) as http:
            given = {**headers, "authorization": f"Bearer {key}"} if key else headers
            return await asyncio.wait_for(http.request(method, f"http://silas.test{PATH}", headers=given), 10)

    return asyncio.run(run())


@pytest.mark.parametrize("method", ["GET", "DELETE", "HEAD"])
def test_request_that_only_waits_is_ended(api: Api, method: str) -> None:
    answer = request(method, api.key, accept="text/event-stream")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"


@pytest.mark.parametrize("key", ["", "sk_" + "a" * 43])
def test_without_a_good_key_nothing_is_served(database: None, key: str) -> None:
    assert request("POST", key).status_code == 401


def test_key_for_something_else_is_refused(tenant: Any) -> None:
    assert request("POST", Api(tenant, KeyScope.SAFETY_CONFIRM).key).status_code == 403


def test_key_that_is_revoked_in_the_middle_reaches_nothing_more(api: Api, tenant: Any) -> None:
    def revoke() -> None:
        with tenant_scope(tenant):
            revoke_api_key(api.row)

    async def ask(client: Client) -> Any:
        await loop(client)
        await in_thread(revoke)
        return (await loop(client))[1]

    assert in_memory(api, ask)["error"]["code"] == "PERMISSION_DENIED"


def test_other_addresses_are_the_applications_own() -> None:
    with pytest.raises(AssertionError, match="not for the loop"):
        asyncio.run(with_safety(nobody)({"type": "http", "path": "/console/"}, None, None))


def test_loop_over_a_pipe(api: Api) -> None:
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["manage.py", "safety_server"],
        cwd=str(ROOT),
        env={**os.environ, "SILAS_SAFETY_KEY": api.key},
    )

    async def run() -> Any:
        async with Client(parameters) as client:
            return await loop(client)

    assert asyncio.run(run())[1]["data"]["autonomy"]["continue"] is True
