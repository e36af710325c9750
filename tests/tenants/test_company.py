"""The company's name and time zone, in the console and over the REST API."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from apps.tenants.enums import KeyScope
from apps.tenants.models import Tenant
from tests.factories.api import Api, code
from tests.factories.audit import changes
from tests.factories.console import browser
from tests.factories.tenants import make_member

COMPANY = "/api/v1/company"


def stored(tenant: Any) -> tuple[str, str]:
    row = Tenant.objects.get(pk=tenant.pk)
    return row.name, row.timezone


def test_company_is_read_changed_and_recorded(tenant: Any, other_tenant: Any) -> None:
    api, others = Api(tenant), stored(other_tenant)
    name, zone = stored(tenant)
    read = api.get(COMPANY)
    assert read.json() == {"name": name, "timezone": zone}
    changed = api.patch(COMPANY, {"timezone": "Asia/Tokyo"}, if_match=read["ETag"])
    assert changed.json() == {"name": name, "timezone": "Asia/Tokyo"}
    assert stored(tenant) == (name, "Asia/Tokyo")
    assert stored(other_tenant) == others
    [change] = changes(tenant)
    assert change["model"] == "tenants.tenant"
    assert change["fields"] == ["timezone"]
    assert change["before"] != change["after"]
    assert code(api.patch(COMPANY, {"name": "Lost"}, if_match=read["ETag"])) == (412, "changed_meanwhile")
    assert api.patch(COMPANY, {"timezone": "Asia/Tokyo"}).status_code == 200
    assert len(changes(tenant)) == 1


def test_roles_and_scopes(tenant: Any, owner: Any) -> None:
    assert Api(tenant, member=owner).patch(COMPANY, {}).status_code == 200
    for role in ("approver", "agent", "viewer"):
        member = Api(tenant, member=make_member(tenant, role))
        assert code(member.get(COMPANY)) == (403, "forbidden_role")
        assert code(member.patch(COMPANY, {"name": "Mine"})) == (403, "forbidden_role")
    reader = Api(tenant, KeyScope.SETTINGS_READ)
    assert reader.get(COMPANY).status_code == 200
    assert code(reader.patch(COMPANY, {})) == (403, "forbidden_scope")
    assert code(Api(tenant, KeyScope.GATES_READ).get(COMPANY)) == (403, "forbidden_scope")


@pytest.mark.parametrize(
    "body",
    [
        {"name": ""},
        {"name": "x" * 121},
        {"name": "with\0zero"},
        {"name": ["A"]},
        {"timezone": ""},
        {"timezone": "Mars/Olympus"},
        {"timezone": "../etc/passwd"},
        {"timezone": None},
        {"slug": "taken"},
        {"second_factor_required": False},
    ],
)
def test_wrong_value_is_refused(tenant: Any, body: dict[str, Any]) -> None:
    before = stored(tenant)
    assert code(Api(tenant).patch(COMPANY, body)) == (400, "invalid")
    assert stored(tenant) == before
    assert changes(tenant) == []


def test_owner_changes_name_and_time_zone_on_the_page(tenant: Any, owner: Any) -> None:
    address, desk = reverse("console-company-settings"), browser(owner)
    shown = desk.get(address).content.decode()
    assert f'value="{tenant.name}"' in shown
    assert '<option value="Europe/London">' in shown
    assert '<option value="localtime">' not in shown
    wrong = desk.post(address, {"name": "Acme", "timezone": "Nowhere"})
    assert wrong.status_code == 422
    assert b"is not a time zone" in wrong.content
    assert desk.post(address, {"name": " Acme <b>Ltd</b> ", "timezone": "Europe/Paris"}).status_code == 302
    assert stored(tenant) == ("Acme <b>Ltd</b>", "Europe/Paris")
    assert "<b>Ltd</b>" not in desk.get(address).content.decode()
