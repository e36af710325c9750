"""A superuser of the database changes no outside tool, no server and no web search that people set up."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from apps.toolservers import queries, services
from apps.toolservers.models import OutsideTool, ToolServer
from apps.toolservers.schemas import Descriptor, Terms
from apps.toolservers.web import queries as web
from apps.toolservers.web.services import set_search
from kernel.errors import NotFound
from kernel.tenancy import tenant_scope
from tests.factories.audit import tampering

SAID = Descriptor("pay", "Pay", "Pays an amount.", {"type": "object", "properties": {}}, {}, "a" * 64)


@pytest.fixture
def server(tenant: Any) -> ToolServer:
    """One of its tools was accepted, as a grave act."""
    with tenant_scope(tenant):
        row = services.add_server("crm", url="https://crm.example.org/mcp", actor="system")
        services.store_listing(row.pk, [SAID])
        tool = OutsideTool.objects.get(server=row)
        terms = Terms(acting=True, risk="high", price=Decimal("0.02"))
        services.accept_tool(tool.pk, terms, digest=SAID.digest, by=None, actor="system")
    return row


def offered(tenant: Any) -> list[str]:
    with tenant_scope(tenant):
        return [tool.name for tool in queries.tools_for(["mcp:crm"])]


def test_tool_that_was_accepted_is_offered(tenant: Any, server: ToolServer) -> None:
    assert offered(tenant) == ["pay"]


@pytest.mark.parametrize(
    "forgery",
    [
        "UPDATE toolservers_outsidetool SET acting = false WHERE server_id = %s",
        "UPDATE toolservers_outsidetool SET risk = 'low' WHERE server_id = %s",
        "UPDATE toolservers_outsidetool SET level = 'public' WHERE server_id = %s",
        "UPDATE toolservers_outsidetool SET price = 0 WHERE server_id = %s",
        "UPDATE toolservers_outsidetool SET said = jsonb_set(said, '{description}', '\"Reads.\"') WHERE server_id = %s",
        "UPDATE toolservers_toolserver SET url = 'https://evil.example.org/mcp' WHERE id = %s",
    ],
)
def test_tool_that_was_changed_by_sql_is_not_offered(
    tenant: Any, server: ToolServer, superuser_dsn: str, forgery: str
) -> None:
    with tampering(superuser_dsn) as cursor:
        cursor.execute(forgery.encode(), [server.pk])
    assert offered(tenant) == []


def test_server_that_was_moved_by_sql_is_not_asked(tenant: Any, server: ToolServer, superuser_dsn: str) -> None:
    with tampering(superuser_dsn) as cursor:
        cursor.execute("UPDATE toolservers_toolserver SET url = 'https://evil.example.org' WHERE id = %s", [server.pk])
    with tenant_scope(tenant), pytest.raises(NotFound):
        queries.address_of(server.pk)


def test_server_that_was_switched_off_is_switched_on_by_people_alone(
    tenant: Any, server: ToolServer, superuser_dsn: str
) -> None:
    with tenant_scope(tenant):
        services.set_enabled(server.pk, False, actor="system")
    with tampering(superuser_dsn) as cursor:
        cursor.execute("UPDATE toolservers_toolserver SET enabled = true WHERE id = %s", [server.pk])
    assert offered(tenant) == []
    with tenant_scope(tenant):
        ToolServer.objects.filter(pk=server.pk).update(enabled=False)
        services.set_enabled(server.pk, True, actor="system")
    assert offered(tenant) == ["pay"]


def test_suspended_tool_is_accepted_by_no_row(tenant: Any, server: ToolServer, superuser_dsn: str) -> None:
    with tenant_scope(tenant):
        services.suspend_tool(OutsideTool.objects.get(server=server).pk, actor="system")
    with tampering(superuser_dsn) as cursor:
        cursor.execute("UPDATE toolservers_outsidetool SET state = 'accepted' WHERE server_id = %s", [server.pk])
    assert offered(tenant) == []


@pytest.mark.parametrize(
    "change", ["base_url = 'https://evil.example.org'", "level = 'none'", "domains = '[\"x.org\"]'"]
)
def test_search_of_the_web_that_was_changed_by_sql_is_none(
    tenant: Any, deployment: Any, superuser_dsn: str, change: str
) -> None:
    with tenant_scope(tenant):
        set_search("brave", key="search-key", domains=["example.org"], actor="system")
        assert web.search_terms(deployment.pk).value is not None
    with tampering(superuser_dsn) as cursor:
        cursor.execute(f"UPDATE toolservers_websearch SET {change} WHERE tenant_id = %s".encode(), [tenant.pk])
    with tenant_scope(tenant):
        assert web.search_terms(deployment.pk).value is None
