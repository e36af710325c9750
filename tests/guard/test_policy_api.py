"""The spending policy over the REST API."""

from __future__ import annotations

from typing import Any

import pytest

from apps.tenants.enums import KeyScope
from tests.factories.api import Api, code
from tests.factories.audit import changes
from tests.factories.tenants import make_member

POLICY = "/api/v1/spending-policy"
DEFAULTS = {"on_limit": "pause_all", "visitor_daily_usd": None, "default_input": None, "default_output": None}


def test_policy_is_read_and_changed_in_part(tenant: Any, other_tenant: Any) -> None:
    api = Api(tenant)
    assert api.get(POLICY).json() == DEFAULTS
    changed = api.patch(POLICY, {"on_limit": "alert_only", "visitor_daily_usd": "0.50"})
    assert changed.json() == DEFAULTS | {"on_limit": "alert_only", "visitor_daily_usd": "0.5"}
    assert api.patch(POLICY, {"visitor_daily_usd": None}).json() == DEFAULTS | {"on_limit": "alert_only"}
    assert api.get(POLICY).json()["on_limit"] == "alert_only"
    assert Api(other_tenant).get(POLICY).json() == DEFAULTS
    assert [entry["fields"] for entry in changes(tenant)] == [["on_limit", "visitor_daily_usd"], ["visitor_daily_usd"]]


def test_change_of_an_older_version_is_refused(tenant: Any) -> None:
    api = Api(tenant)
    read = api.get(POLICY)["ETag"]
    assert api.patch(POLICY, {"on_limit": "alert_only"}, if_match=read).status_code == 200
    assert code(api.patch(POLICY, {"on_limit": "pause_all"}, if_match=read)) == (412, "changed_meanwhile")
    assert api.get(POLICY).json()["on_limit"] == "alert_only"


def test_roles_and_scopes(tenant: Any, owner: Any) -> None:
    assert Api(tenant, member=owner).patch(POLICY, {}).status_code == 200
    for role in ("approver", "agent", "viewer"):
        member = Api(tenant, member=make_member(tenant, role))
        assert code(member.get(POLICY)) == (403, "forbidden_role")
        assert code(member.patch(POLICY, {})) == (403, "forbidden_role")
    reader = Api(tenant, KeyScope.SETTINGS_READ)
    assert reader.get(POLICY).status_code == 200
    assert code(reader.patch(POLICY, {})) == (403, "forbidden_scope")
    assert code(Api(tenant, KeyScope.GATES_READ).get(POLICY)) == (403, "forbidden_scope")


@pytest.mark.parametrize(
    "body",
    [
        {"on_limit": "carry_on"},
        {"on_limit": None},
        {"visitor_daily_usd": "-1"},
        {"visitor_daily_usd": "NaN"},
        {"visitor_daily_usd": [1]},
        {"default_input": "1"},
        {"default_input": "1", "default_output": "-1"},
        {"limit_usd": "1"},
    ],
)
def test_wrong_value_is_refused(tenant: Any, body: dict[str, Any]) -> None:
    assert code(Api(tenant).patch(POLICY, body)) == (400, "invalid")
    assert changes(tenant) == []
