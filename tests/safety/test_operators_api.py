"""REST API of the safety loop for operators: holds and the policy are read, another policy is tried,
and nothing is lifted or changed."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from apps.safety.models import Hold
from apps.safety.services import write_policy
from apps.tenants.enums import KeyScope
from apps.tenants.services import create_api_key
from kernel.tenancy import tenant_scope
from tests.factories.console import browser
from tests.factories.safety import DANGER, started

HOLDS, POLICY = "/api/v1/safety-holds", "/api/v1/safety-policy"


def _key(tenant: Any, *scopes: KeyScope) -> str:
    with tenant_scope(tenant):
        return create_api_key("operator", scopes=scopes).key


@pytest.fixture
def call(tenant: Any) -> Any:
    own = _key(tenant)

    def send(method: str, address: str, body: Any = None, *, key: str = own) -> Any:
        headers = {"Authorization": f"Bearer {key}"}
        return getattr(Client(), method)(address, body, content_type="application/json", headers=headers)

    return send


def test_holds_are_listed_without_codes_for_their_company_alone(call: Any, tenant: Any, other_tenant: Any) -> None:
    started(tenant).report(DANGER)
    answer = call("get", f"{HOLDS}?state=open")
    assert [hold["agent"] for hold in answer.json()["holds"]] == ["clerk"]
    assert not {"code", "token", "proofs"} & answer.json()["holds"][0].keys()
    assert call("get", HOLDS, key=_key(other_tenant)).json()["holds"] == []
    for path in ("allow", "code", "token"):
        with tenant_scope(tenant):
            hold = Hold.objects.get()
        assert call("post", f"{HOLDS}/{hold.pk}/{path}").status_code == 404


def test_policy_is_read_and_another_one_tried(call: Any, tenant: Any) -> None:
    started(tenant).report(DANGER)
    with tenant_scope(tenant):
        write_policy({"deny": ["*invoice*"]}, actor="user:x", note="No invoices")
    answer = call("get", POLICY).json()
    assert answer["active"]["deny"] == ["*invoice*"]
    assert [version["note"] for version in answer["versions"]] == ["No invoices"]
    tried = call("post", f"{POLICY}/backtest", {"content": {"tolerance": "aggressive"}}).json()
    assert tried["read"] == 1
    own = call("get", f"{POLICY}?principal={answer['principals'][0]}").json()
    assert own["active"]["deny"] == ["*invoice*"]
    assert own["versions"] == []


@pytest.mark.parametrize("method", ["put", "post", "delete", "patch"])
def test_policy_is_changed_by_no_program(call: Any, method: str) -> None:
    assert call(method, POLICY, {"content": {"mode": "disabled"}}).status_code == 405


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"content": {"denny": ["x"]}}, 400),
        ({"content": {"max_steps": "many"}}, 400),
        ({"content": {"scores": [{"pattern": "x", "score": 101}]}}, 400),
        ({"principal": "api_key:unknown", "content": {}}, 404),
        ({}, 400),
    ],
)
def test_wrong_trial_is_refused(call: Any, body: Any, status: int) -> None:
    assert call("post", f"{POLICY}/backtest", body).status_code == status


def test_roles_and_scopes(call: Any, tenant: Any, approver: Any, stranger: Any) -> None:
    assert browser(approver).get(HOLDS).status_code == 200
    assert browser(approver).get(POLICY).status_code == 403
    assert browser(stranger).get(HOLDS).status_code == 403
    refused = call("post", f"{POLICY}/backtest", {"content": {}}, key=_key(tenant, KeyScope.SETTINGS_READ))
    assert refused.status_code == 403
    assert refused.json()["error"]["extra"]["scope"] == "settings:write"
    agents = _key(tenant, KeyScope.SAFETY_AGENT)
    assert call("get", HOLDS, key=agents).status_code == 403
    assert call("get", POLICY, key=agents).status_code == 403
