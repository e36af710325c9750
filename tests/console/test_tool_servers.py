"""An owner's pages of outside tool servers: what each says, on which terms a tool is taken, and who may not."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.urls import reverse

from apps.toolservers import services
from apps.toolservers.enums import ToolState
from apps.toolservers.models import OutsideTool, ToolServer, WebSearch
from apps.toolservers.schemas import Descriptor
from kernel.tenancy import tenant_scope
from tests.factories.console import browser
from tests.factories.tenants import make_member

SCRIPT = "<script>alert(1)</script>"
SCHEMA = {"type": "object", "properties": {"order": {"type": "string"}}}
PAGES = ["console-tool-servers", "console-tool-server"]
DEEDS = ["refresh", "switch", "remove"]


def said(description: str, digest: str = "a" * 64) -> Descriptor:
    return Descriptor(
        name="find", title="Find", description=description, schema=SCHEMA, annotations={}, digest=digest, problem=""
    )


@pytest.fixture
def server(tenant: Any) -> ToolServer:
    """It was asked once, and listed one tool."""
    with tenant_scope(tenant):
        row = services.add_server("crm", url="https://crm.example.org/mcp", secret="b3arer", actor="system")
        return services.store_listing(row.pk, [said(f"Finds an order. {SCRIPT}")])


def tool_of(server: ToolServer) -> OutsideTool:
    with tenant_scope(server.tenant_id):
        return OutsideTool.objects.get(server=server)


def page_of(user: Any, server: ToolServer) -> str:
    return str(browser(user).get(reverse("console-tool-server", args=[server.pk])).content.decode())


def accept(user: Any, server: ToolServer, **sent: Any) -> Any:
    tool = tool_of(server)
    terms = {"digest": tool.seen_digest, "risk": "low", "price": "0.02", "timeout": "20", **sent}
    return browser(user).post(reverse("console-tool-accept", args=[server.pk, tool.pk]), terms)


def address(name: str, server: ToolServer) -> str:
    return reverse(name, args=[] if name == "console-tool-servers" else [server.pk])


@pytest.mark.parametrize(("role", "status"), [("owner", 200), ("approver", 403), ("viewer", 403), ("stranger", 403)])
@pytest.mark.parametrize("name", PAGES)
def test_page_is_for_owners(
    server: ToolServer, name: str, role: str, status: int, request: pytest.FixtureRequest
) -> None:
    assert browser(request.getfixturevalue(role)).get(address(name, server)).status_code == status


@pytest.mark.parametrize("deed", DEEDS)
def test_deed_at_anothers_server_is_not_found(server: ToolServer, other_tenant: Any, deed: str) -> None:
    foreigner = browser(make_member(other_tenant, "owner"))
    assert foreigner.post(reverse(f"console-tool-server-{deed}", args=[server.pk])).status_code == 404


@pytest.mark.parametrize("deed", DEEDS)
def test_deed_of_an_approver_is_refused(server: ToolServer, approver: Any, deed: str) -> None:
    assert browser(approver).post(reverse(f"console-tool-server-{deed}", args=[server.pk])).status_code == 403


def test_tool_of_another_server_is_not_found(server: ToolServer, owner: Any) -> None:
    gone = reverse("console-tool-suspend", args=[server.pk, uuid4()])
    assert browser(owner).post(gone).status_code == 404


def test_server_is_added_and_its_token_shown_nowhere(tenant: Any, owner: Any) -> None:
    sent = {"name": "shop", "url": "https://shop.example.org/mcp", "secret": "t0ken-of-the-shop"}
    browser(owner).post(reverse("console-tool-server-new"), sent)
    with tenant_scope(tenant):
        made = ToolServer.objects.get(name="shop")
    assert bool(made.secret)
    assert "t0ken-of-the-shop" not in page_of(owner, made)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/mcp", "ftp://example.org", "https://10.0.0.1/mcp"])
def test_address_that_is_refused_is_said_and_kept(owner: Any, url: str) -> None:
    answer = browser(owner).post(reverse("console-tool-server-new"), {"name": "shop", "url": url})
    assert answer.status_code == 422
    assert f'value="{url}"' in answer.content.decode()


def test_what_a_server_says_is_shown_as_text(server: ToolServer, owner: Any) -> None:
    page = page_of(owner, server)
    assert "Finds an order." in page
    assert SCRIPT not in page


def test_tool_is_taken_on_the_owners_terms(server: ToolServer, owner: Any) -> None:
    accept(owner, server, level="verified")
    tool = tool_of(server)
    assert tool.state == ToolState.ACCEPTED
    assert tool.acting is False
    assert tool.risk == "low"
    assert tool.level == "verified"
    assert str(tool.price.normalize()) == "0.02"


def test_tool_that_changed_meanwhile_is_not_taken(server: ToolServer, owner: Any) -> None:
    """What the owner had before them was another description."""
    before = tool_of(server).seen_digest
    with tenant_scope(server.tenant_id):
        services.store_listing(server.pk, [said("Deletes an order.", "b" * 64)])
    assert accept(owner, server, digest=before).status_code == 409


@pytest.mark.parametrize("wrong", [{"price": "much"}, {"timeout": "soon"}, {"risk": "none"}, {"price": "-1"}])
def test_terms_that_make_no_sense_are_refused(server: ToolServer, owner: Any, wrong: dict[str, str]) -> None:
    assert accept(owner, server, **wrong).status_code == 422


def test_changed_tool_shows_what_it_said_before(server: ToolServer, owner: Any) -> None:
    accept(owner, server)
    with tenant_scope(server.tenant_id):
        services.store_listing(server.pk, [said("Deletes an order.", "b" * 64)])
    page = page_of(owner, server)
    assert "<del>Finds an order." in page
    assert "Deletes an order." in page


def test_accepted_tool_is_stopped(server: ToolServer, owner: Any) -> None:
    accept(owner, server)
    browser(owner).post(reverse("console-tool-suspend", args=[server.pk, tool_of(server).pk]))
    assert tool_of(server).state == ToolState.SUSPENDED


def test_server_that_does_not_answer_says_so(tenant: Any, owner: Any, settings: Any) -> None:
    settings.EGRESS_PRIVATE = ["127.0.0.1:9"]
    with tenant_scope(tenant):
        silent = services.add_server("silent", url="http://127.0.0.1:9/mcp", actor="user:1")
    answer = browser(owner).post(reverse("console-tool-server-refresh", args=[silent.pk]))
    assert answer.status_code == 502
    assert 'role="alert"' in answer.content.decode()


def test_removed_server_is_gone(server: ToolServer, owner: Any) -> None:
    browser(owner).post(reverse("console-tool-server-remove", args=[server.pk]))
    assert browser(owner).get(reverse("console-tool-server", args=[server.pk])).status_code == 404


def search_as(user: Any, **sent: str) -> Any:
    said = {"provider": "brave", "key": "k3y-of-the-search", "domains": "example.org, example.com", "level": "public"}
    return browser(user).post(reverse("console-web-search"), {**said, **sent})


def test_search_of_the_web_is_set_up_and_its_key_shown_nowhere(tenant: Any, owner: Any) -> None:
    search_as(owner, price="0.01")
    with tenant_scope(tenant):
        row = WebSearch.objects.get()
    page = browser(owner).get(reverse("console-tool-servers")).content.decode()
    assert row.provider == "brave"
    assert row.domains == ["example.org", "example.com"]
    assert bool(row.key)
    assert "Brave Search." in page
    assert "k3y-of-the-search" not in page


@pytest.mark.parametrize("wrong", [{"price": "much"}, {"provider": "x"}, {"base_url": "https://10.0.0.1"}])
def test_search_that_cannot_be_set_up_says_why(tenant: Any, owner: Any, wrong: dict[str, str]) -> None:
    answer = search_as(owner, **wrong)
    assert answer.status_code == 422
    assert 'role="alert"' in answer.content.decode()
    with tenant_scope(tenant):
        assert not WebSearch.objects.exists()


@pytest.mark.parametrize("name", ["console-web-search", "console-web-search-remove"])
def test_search_of_the_web_is_for_owners(server: ToolServer, approver: Any, other_tenant: Any, name: str) -> None:
    search_as(browser_owner := make_member(server.tenant, "owner"))
    assert browser(approver).post(reverse(name), {"provider": "brave"}).status_code == 403
    browser(make_member(other_tenant, "owner")).post(reverse(name), {"provider": "tavily", "key": "x1y2z3"})
    with tenant_scope(server.tenant_id):
        assert WebSearch.objects.get().provider == "brave"
    browser(browser_owner).post(reverse("console-web-search-remove"))
    with tenant_scope(server.tenant_id):
        assert not WebSearch.objects.exists()
