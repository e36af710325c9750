"""REST API of the safety loop for operators: holds and the policy are read, another policy is tried,
and nothing is lifted or changed."""

from __future__ import annotations

from typing import Any

import pytest

from apps.safety.models import Hold
from apps.safety.services import write_policy
from apps.tenants.enums import KeyScope
from kernel.tenancy import tenant_scope
from tests.factories.api import Api
from tests.factories.console import browser
from tests.factories.safety import DANGER, started

HOLDS, POLICY = "/api/v1/safety-holds", "/api/v1/safety-policy"


@pytest.fixture
def api(tenant: Any) -> Api:
    return Api(tenant)


def test_holds_are_listed_without_codes_for_their_company_alone(api: Api, tenant: Any, other_tenant: Any) -> None:
    started(tenant).report(DANGER)
    answer = api.get(f"{HOLDS}?state=open")
    assert [hold["agent"] for hold in answer.json()["holds"]] == ["clerk"]
    assert not {"code", "token", "proofs"} & answer.json()["holds"][0].keys()
    assert Api(other_tenant).get(HOLDS).json()["holds"] == []
    for path in ("allow", "code", "token"):
        with tenant_scope(tenant):
            hold = Hold.objects.get()
        assert api.post(f"{HOLDS}/{hold.pk}/{path}").status_code == 404


def test_policy_is_read_and_another_one_tried(api: Api, tenant: Any) -> None:
    started(tenant).report(DANGER)
    with tenant_scope(tenant):
        write_policy({"deny": ["*invoice*"]}, actor="user:x", note="No invoices")
    answer = api.get(POLICY).json()
    assert answer["active"]["deny"] == ["*invoice*"]
    assert [version["note"] for version in answer["versions"]] == ["No invoices"]
    tried = api.post(f"{POLICY}/backtest", {"content": {"tolerance": "aggressive"}}).json()
    assert tried["read"] == 1
    own = api.get(f"{POLICY}?principal={answer['principals'][0]}").json()
    assert own["active"]["deny"] == ["*invoice*"]
    assert own["versions"] == []


@pytest.mark.parametrize("method", ["put", "post", "delete", "patch"])
def test_policy_is_changed_by_no_program(api: Api, method: str) -> None:
    assert api.send(method, POLICY, {"content": {"mode": "disabled"}}).status_code == 405


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
def test_wrong_trial_is_refused(api: Api, body: Any, status: int) -> None:
    assert api.post(f"{POLICY}/backtest", body).status_code == status


def test_roles_and_scopes(api: Api, tenant: Any, approver: Any, stranger: Any) -> None:
    assert browser(approver).get(HOLDS).status_code == 200
    assert browser(approver).get(POLICY).status_code == 403
    assert browser(stranger).get(HOLDS).status_code == 403
    refused = Api(tenant, KeyScope.SETTINGS_READ).post(f"{POLICY}/backtest", {"content": {}})
    assert refused.status_code == 403
    assert refused.json()["error"]["extra"]["scope"] == "settings:write"
    agents = Api(tenant, KeyScope.SAFETY_AGENT)
    assert agents.get(HOLDS).status_code == 403
    assert agents.get(POLICY).status_code == 403
