"""A stopped agent stays stopped: in the other web process at once, over MCP as over REST, and after kill -9."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from apps.tenants.rules import is_api_key
from kernel.canonical import sha256_hex
from tests.faults.house import House, Web, await_that

KEY = "sk_" + "b" * 43
HEADERS = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}


def rest(web: Web, operation: str, **params: str) -> dict[str, Any]:
    body = json.dumps({"operation": operation, "params": {"element_name": "clerk", **params}}).encode()
    answer = web.ask("POST", "/api/v1/safety/all", body=body, headers={**HEADERS, "host": "localhost"})
    return json.loads(answer.body)  # type: ignore[no-any-return]


def mcp(web: Web, operation: str) -> dict[str, Any]:
    """One call of the era before sessions ended; this server asks for no handshake."""
    params = {"name": "mcp_aql_execute", "arguments": {"operation": operation, "params": {"element_name": "another"}}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    accept = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
    answer = web.ask("POST", "/mcp/safety", body=body, headers={**HEADERS, **accept, "host": "localhost"})
    return json.loads(json.loads(answer.body)["result"]["content"][0]["text"])  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def webs(house: House) -> Iterator[tuple[Web, Web]]:
    """Two, and an agent that one of them has just stopped."""
    assert is_api_key(KEY)
    house.rows(
        "INSERT INTO tenants_apikey (id, tenant_id, name, prefix, hashed, scopes, created_at)"
        " SELECT gen_random_uuid(), id, 'Agent', 'sk_b', %s, '[\"safety:agent\"]', now() FROM tenants_tenant LIMIT 1",
        sha256_hex(KEY),
    )
    first, second = house.start_web(), house.start_web()
    await_that(first.is_ready, "the first web process is ready")
    await_that(second.is_ready, "the second web process is ready")
    rest(first, "execute_agent")
    said = rest(first, "record_execution_step", next_action_hint="drop table users")
    assert said["data"]["autonomy"]["stopped"] is True
    yield first, second
    house.kill(second.process)


def test_other_process_holds_it_at_once_over_rest(webs: tuple[Web, Web]) -> None:
    said = rest(webs[1], "record_execution_step", next_action_hint="reading the manual")
    assert said["data"]["autonomy"]["stopped"] is True


def test_other_process_holds_it_at_once_over_mcp(webs: tuple[Web, Web]) -> None:
    assert mcp(webs[1], "execute_agent")["error"]["code"] == "PERMISSION_DENIED"


def test_block_outlives_a_process_that_was_killed(webs: tuple[Web, Web], house: House) -> None:
    house.kill(webs[0].process)
    third = house.start_web()
    await_that(third.is_ready, "the third web process is ready")
    try:
        assert rest(third, "execute_agent")["error"]["details"]["reason"] == "hard_blocked"
        assert mcp(third, "execute_agent")["error"]["code"] == "PERMISSION_DENIED"
    finally:
        house.kill(third.process)
