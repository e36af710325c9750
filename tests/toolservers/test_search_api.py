"""REST API of web search: set, read without its key, and removed."""

from __future__ import annotations

from typing import Any

import pytest

from apps.audit.models import AuditEntry
from apps.tenants.enums import KeyScope
from kernel.tenancy import tenant_scope
from tests.factories.api import Api
from tests.factories.console import browser

SEARCH, SECRET = "/api/v1/web-search", "k3y-of-the-search"


def call(tenant: Any, method: str, body: Any = None, *scopes: KeyScope) -> Any:
    return Api(tenant, *scopes).send(method, SEARCH, body)


def test_search_is_set_read_without_its_key_and_removed(tenant: Any, other_tenant: Any) -> None:
    assert call(tenant, "get").status_code == 404
    saved = call(tenant, "put", {"provider": "brave", "key": SECRET, "domains": ["example.com"]})
    assert saved.status_code == 200
    assert saved.json()["with_key"] is True
    assert SECRET not in saved.content.decode()
    assert call(tenant, "get").json()["domains"] == ["example.com"]
    assert call(other_tenant, "get").status_code == 404
    assert call(other_tenant, "delete").status_code == 404
    assert call(tenant, "delete").status_code == 204
    assert call(tenant, "get").status_code == 404
    with tenant_scope(tenant):
        assert AuditEntry.objects.filter(event="web_search_set").latest("seq").actor.startswith("api_key:")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"provider": "altavista"}, 400),
        ({"provider": "brave", "kye": SECRET}, 400),
        ({"provider": "brave", "key": SECRET, "most_results": 100}, 400),
        ({"provider": "brave", "key": "with space\n"}, 422),
        ({"provider": "brave", "key": SECRET, "base_url": "http://169.254.169.254"}, 422),
    ],
)
def test_wrong_settings_are_refused(tenant: Any, body: Any, status: int) -> None:
    assert call(tenant, "put", body).status_code == status
    assert call(tenant, "get").status_code == 404


def test_strangers_and_keys_without_the_scope_are_refused(tenant: Any, approver: Any, stranger: Any) -> None:
    refused = call(tenant, "put", {"provider": "brave"}, KeyScope.CONNECTIONS_READ)
    assert refused.status_code == 403
    assert refused.json()["error"]["extra"]["scope"] == "connections:write"
    assert browser(approver).get(SEARCH).status_code == 403
    assert browser(stranger).get(SEARCH).status_code == 403
