"""Retention and visitors' limits of a company, in the console and over the REST API."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from apps.audit.models import AuditEntry
from apps.sessions.ratelimit.limits import bounds
from apps.tenants.enums import KeyScope
from apps.tenants.queries import retention
from kernel.tenancy import tenant_scope
from tests.factories.api import Api, code
from tests.factories.audit import changes
from tests.factories.console import browser
from tests.factories.tenants import make_member

RETENTION = "/api/v1/retention"
LIMITS = "/api/v1/visitor-limits"
DAYS = {"conversation_days": "", "memory_days": "", "skill_days": "", "message_days": ""}


def test_days_are_read_changed_and_recorded(tenant: Any) -> None:
    api = Api(tenant)
    read = api.get(RETENTION)
    installation = {"conversation_days": None, "memory_days": 365, "skill_days": None, "message_days": 7}
    assert read.json() == {**dict.fromkeys(DAYS), "installation": installation}
    changed = api.patch(RETENTION, {"conversation_days": 90}, if_match=read["ETag"])
    assert changed.status_code == 200
    assert changed.json()["conversation_days"] == 90
    with tenant_scope(tenant):
        assert retention().conversations == 90
        assert AuditEntry.objects.get(event="admin_changed").actor == api.actor
    assert changes(tenant) == [
        {
            "model": "tenants.retention",
            "change": "changed",
            "fields": ["conversation_days"],
            "before": {"conversation_days": None},
            "after": {"conversation_days": 90},
        }
    ]
    assert code(api.patch(RETENTION, {"memory_days": 1}, if_match=read["ETag"])) == (412, "changed_meanwhile")
    assert api.patch(RETENTION, {"conversation_days": None}, if_match=changed["ETag"]).json() == read.json()


def test_limits_are_read_changed_and_hold(tenant: Any, other_tenant: Any) -> None:
    api = Api(tenant)
    read = api.get(LIMITS)
    assert read.json()["messages_a_minute"] is None
    assert read.json()["installation"]["messages_a_minute"] == 60
    changed = api.patch(LIMITS, {"messages_a_minute": 7, "sockets": 2}, if_match=read["ETag"])
    assert changed.json()["messages_a_minute"] == 7
    with tenant_scope(tenant):
        assert bounds().messages_a_minute == 7
        assert bounds().sockets == 2
        assert bounds().pending_turns == 20
    assert Api(other_tenant).get(LIMITS).json()["messages_a_minute"] is None


def test_nothing_is_recorded_where_nothing_changes(tenant: Any) -> None:
    assert Api(tenant).patch(LIMITS, {"sockets": None}).status_code == 200
    assert changes(tenant) == []


@pytest.mark.parametrize("path", [RETENTION, LIMITS])
def test_roles_and_scopes(tenant: Any, owner: Any, path: str) -> None:
    assert Api(tenant, member=owner).patch(path, {}).status_code == 200
    for role in ("approver", "agent", "viewer"):
        member = Api(tenant, member=make_member(tenant, role))
        assert code(member.get(path)) == (403, "forbidden_role")
        assert code(member.patch(path, {})) == (403, "forbidden_role")
    reader = Api(tenant, KeyScope.SETTINGS_READ)
    assert reader.get(path).status_code == 200
    assert code(reader.patch(path, {})) == (403, "forbidden_scope")
    assert code(Api(tenant, KeyScope.GATES_READ).get(path)) == (403, "forbidden_scope")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (RETENTION, {"conversation_days": 0}),
        (RETENTION, {"conversation_days": 3651}),
        (RETENTION, {"conversation_days": "soon"}),
        (RETENTION, {"audit_days": 3}),
        (LIMITS, {"messages_a_minute": 0}),
        (LIMITS, {"messages_a_minute": 2**31}),
        (LIMITS, {"sockets": [1]}),
    ],
)
def test_wrong_value_is_refused(tenant: Any, path: str, body: dict[str, Any]) -> None:
    assert code(Api(tenant).patch(path, body)) == (400, "invalid")
    assert changes(tenant) == []


def test_owner_confirms_that_data_is_deleted_earlier(tenant: Any, owner: Any) -> None:
    address, desk = reverse("console-retention"), browser(owner)
    typed = {**DAYS, "conversation_days": "30"}
    refused = desk.post(address, typed)
    assert refused.status_code == 422
    assert b"confirm them below" in refused.content
    assert changes(tenant) == []
    assert desk.post(address, {**typed, "confirmed": "on"}).status_code == 302
    with tenant_scope(tenant):
        assert retention().conversations == 30
    assert desk.post(address, {**typed, "conversation_days": "60"}).status_code == 302
    assert b'value="60"' in desk.get(address).content


def test_shorter_than_the_installation_is_confirmed_too(owner: Any) -> None:
    address, desk = reverse("console-retention"), browser(owner)
    assert desk.post(address, {**DAYS, "memory_days": "364"}).status_code == 422
    assert desk.post(address, {**DAYS, "memory_days": "365"}).status_code == 302


def test_page_of_limits_shows_what_holds_and_saves(tenant: Any, owner: Any) -> None:
    address, desk = reverse("console-visitor-limits"), browser(owner)
    shown = desk.get(address).content.decode()
    assert "Empty: 60." in shown
    wrong = desk.post(address, {"messages_a_minute": "0"})
    assert wrong.status_code == 422
    assert b"greater than or equal to 1" in wrong.content
    assert desk.post(address, {"messages_a_minute": "12"}).status_code == 302
    with tenant_scope(tenant):
        assert bounds().messages_a_minute == 12
    assert changes(tenant)[0]["after"] == {"messages_a_minute": 12}
