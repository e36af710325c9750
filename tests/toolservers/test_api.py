"""Tool servers over HTTP: strangers and foreign ids first; then the same verbs as the console's."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from apps.tenants.services import create_api_key
from apps.toolservers import services
from apps.toolservers.models import ToolServer
from kernel.tenancy import tenant_scope
from tests.factories.console import browser
from tests.factories.tenants import make_member
from tests.toolservers.conftest import SECRET, Desk

PATH = "/api/v1/mcp-servers"
TERMS = {"acting": False, "risk": "low", "price": "0.02", "timeout": 20}


def requests_about(server: Any, tool: Any) -> list[tuple[str, str]]:
    one = f"{PATH}/{server}"
    tools = [("post", f"{one}/tools/{tool}/{verb}") for verb in ("accept", "suspend")]
    return [("get", one), ("patch", one), ("post", f"{one}/look"), *tools, ("delete", one)]


def call(client: Any, method: str, path: str, body: Any = None, **headers: str) -> Any:
    if method == "get":
        return client.get(path, headers=headers)
    return getattr(client, method)(path, body or {}, content_type="application/json", headers=headers)


def key_of(tenant: Any) -> dict[str, str]:
    with tenant_scope(tenant):
        return {"authorization": f"Bearer {create_api_key('Test', actor='system').key}"}


def test_foreign_and_unknown_servers_are_not_found(desk: Desk, other_tenant: Any) -> None:
    tool = desk.listed().tool("look-up")
    client, terms = browser(make_member(other_tenant, "owner")), {**TERMS, "digest": tool.seen_digest}
    asked = [one for server in (desk.server.pk, uuid4()) for one in requests_about(server, tool.pk)]
    bodies = [terms if path.endswith("/accept") else {} for _, path in asked]
    answers = [call(client, *one, body) for one, body in zip(asked, bodies, strict=True)]
    assert {answer.status_code for answer in answers} == {404}
    assert client.get(PATH).json() == []


def test_others_than_owners_are_refused(desk: Desk, approver: Any, viewer: Any, stranger: Any) -> None:
    tool = desk.listed().tool("look-up")
    asked = [("get", PATH), ("post", PATH), *requests_about(desk.server.pk, tool.pk)]
    people = [browser(user) for user in (approver, viewer, stranger)]
    assert {call(client, *one).status_code for client in people for one in asked} == {403}
    assert {call(browser(None), *one).status_code for one in asked} == {401}


def test_tool_of_another_server_is_not_found(desk: Desk, owner: Any) -> None:
    tool = desk.listed().tool("look-up")
    with tenant_scope(desk.tenant):
        other = services.add_server("shop", url=desk.fake.url, actor="user:1")
    assert call(browser(owner), "post", f"{PATH}/{other.pk}/tools/{tool.pk}/suspend").status_code == 404


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"url": "http://10.0.0.1/mcp"}, "address_refused"),
        ({"url": "https://169.254.169.254/"}, "address_refused"),
        ({"name": "goal-keeper"}, "tool_server_name"),
        ({"secret": "two words"}, "tool_server_secret"),
    ],
)
def test_server_that_cannot_be_is_refused_and_not_kept(
    tenant: Any, owner: Any, wrong: dict[str, str], code: str
) -> None:
    body = {"name": "shop", "url": "https://shop.example.org/mcp", **wrong}
    answer = call(browser(owner), "post", PATH, body)
    with tenant_scope(tenant):
        assert answer.status_code == 422
        assert answer.json()["error"]["code"] == code
        assert not ToolServer.objects.exists()


def test_server_is_registered_with_a_key_and_its_token_shown_nowhere(tenant: Any) -> None:
    key, client = key_of(tenant), browser(None)
    body = {"name": "shop", "url": "https://shop.example.org/mcp", "secret": SECRET}
    made = call(client, "post", PATH, body, **key)
    told = [made, client.get(PATH, headers=key), client.get(f"{PATH}/{made.json()['id']}", headers=key)]
    assert made.status_code == 201
    assert made.json()["with_secret"] is True
    assert made.json()["tools"] == []
    assert not any(SECRET in each.content.decode() for each in told)


def test_owner_looks_accepts_as_read_and_suspends(desk: Desk, owner: Any) -> None:
    client, one = browser(owner), f"{PATH}/{desk.server.pk}"
    tools = {tool["name"]: tool for tool in call(client, "post", f"{one}/look").json()["tools"]}
    tool = tools["look-up"]
    at = f"{one}/tools/{tool['id']}"
    taken = call(client, "post", f"{at}/accept", {**TERMS, "digest": tool["seen_digest"]})
    assert taken.status_code == 200
    assert taken.json()["state"] == "accepted"
    assert desk.tool("look-up").accepted_by == owner.pk
    assert call(client, "post", f"{at}/suspend").json()["state"] == "suspended"


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"digest": "b" * 64}, 409, "tool_changed"),
        ({"timeout": 121}, 422, "tool_terms"),
        ({"price": "-1"}, 422, "tool_terms"),
        ({"proof": {"tool": "crm_refund"}}, 422, "tool_proof"),
    ],
)
def test_tool_is_not_taken_otherwise(desk: Desk, owner: Any, change: Any, status: int, code: str) -> None:
    tool = desk.listed().tool("look-up")
    at = f"{PATH}/{desk.server.pk}/tools/{tool.pk}/accept"
    refused = call(browser(owner), "post", at, {**TERMS, "digest": tool.seen_digest, **change})
    assert refused.status_code == status
    assert refused.json()["error"]["code"] == code


def test_key_takes_no_tool_into_use(desk: Desk) -> None:
    """What is in use is what a person read (ADR 75)."""
    tool = desk.listed().tool("look-up")
    at = f"{PATH}/{desk.server.pk}/tools/{tool.pk}/accept"
    refused = call(browser(None), "post", at, {**TERMS, "digest": tool.seen_digest}, **key_of(desk.tenant))
    assert refused.status_code == 403
    assert desk.tool("look-up").state == "new"


def test_server_that_does_not_answer_says_why(desk: Desk, owner: Any) -> None:
    desk.fake.redirect = "https://elsewhere.example.org/"
    refused = call(browser(owner), "post", f"{PATH}/{desk.server.pk}/look")
    assert refused.status_code == 502
    assert refused.json()["error"]["code"] == "tool_server_unreachable"


def test_server_is_switched_off_loses_its_token_and_is_removed(desk: Desk, owner: Any) -> None:
    client, one = browser(owner), f"{PATH}/{desk.server.pk}"
    changed = call(client, "patch", one, {"enabled": False, "secret": ""}).json()
    assert changed["enabled"] is False
    assert changed["with_secret"] is False
    assert call(client, "delete", one).status_code == 204
    assert client.get(one).status_code == 404
