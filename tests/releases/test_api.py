"""REST API of releases: list, read, diff, publish, share, roll back."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from apps.tenants.models import Deployment
from apps.tenants.services import change_deployment, create_api_key
from kernel.tenancy import tenant_scope


@pytest.fixture
def call(tenant: Any, deployment: Deployment) -> Any:
    with tenant_scope(tenant):
        key = create_api_key("releases").key
    address = f"/api/v1/deployments/{deployment.pk}/releases"

    def send(method: str, path: str = "", data: Any = None, *, key: str = key, at: str = address) -> Any:
        headers = {"Authorization": f"Bearer {key}"}
        return getattr(Client(), method)(f"{at}{path}", data, content_type="application/json", headers=headers)

    return send


def edit(deployment: Deployment, **changes: Any) -> None:
    with tenant_scope(deployment.tenant_id):
        change_deployment(Deployment.objects.get(pk=deployment.pk), actor="user:1", **changes)


def test_release_is_published_compared_shared_and_rolled_back(call: Any, deployment: Deployment) -> None:
    edit(deployment, greeting="First")
    listed = call("get").json()
    first = call("post", data={"sha256": listed["working_copy"], "note": "Start"})
    assert first.status_code == 201
    assert first.json()["number"] == 1
    edit(deployment, greeting="Second")
    assert call("get", "/1/diff").json()["changes"] == [
        {"kind": "greeting", "name": "", "before": "First", "after": "Second"}
    ]
    assert call("post", data={"share": 30}).json()["share"] == 30
    assert call("get", "/1/diff?with=2").json()["changes"][0]["after"] == "Second"
    assert call("post", "/2/share", {"share": 60}).json()["share"] == 60
    assert [row["share"] for row in call("get").json()["releases"]] == [60, 40]
    back = call("post", "/1/roll-back", {"newest": 2})
    assert back.status_code == 201
    assert back.json()["restores"] == 1
    assert call("get", "/3").json()["snapshot"]["served"]["greeting"] == "First"


@pytest.mark.parametrize(
    ("path", "data", "status", "code"),
    [
        ("", {"sha256": "0" * 64}, 409, "release_changed"),
        ("", {"share": 30}, 422, "invalid_share"),
        ("", {"share": 1000}, 400, "invalid"),
        ("", {"shaer": 30}, 400, "invalid"),
        ("/1/share", {"share": 30}, 409, "release_not_live"),
        ("/1/roll-back", {"newest": 1}, 404, "not_found"),
        ("/99999999999999999999/roll-back", {"newest": 1}, 404, "not_found"),
    ],
)
def test_bad_request_is_refused_with_a_code(call: Any, path: str, data: Any, status: int, code: str) -> None:
    answer = call("post", path, data)
    assert answer.status_code == status
    assert answer.json()["error"]["code"] == code


@pytest.mark.parametrize("query", ["?with=x", "?with=0", "?with=99999999999999999999"])
def test_diff_with_something_that_is_no_release_is_refused(call: Any, query: str) -> None:
    call("post", data={})
    assert call("get", f"/1/diff{query}").status_code in (400, 404)


def test_foreign_and_unknown_deployments_are_not_found(call: Any, other_tenant: Any, deployment: Deployment) -> None:
    call("post", data={})
    with tenant_scope(other_tenant):
        foreign = create_api_key("foreign").key
    for method, path in (("get", ""), ("post", ""), ("get", "/1"), ("get", "/1/diff"), ("post", "/1/share")):
        assert call(method, path, {"share": 50} if method == "post" else None, key=foreign).status_code == 404
    assert call("get", at=f"/api/v1/deployments/{uuid4()}/releases").status_code == 404


def test_rule_is_set_for_the_company(call: Any) -> None:
    rule = "/api/v1/release-rule"
    assert call("put", data={"simulations": "require"}, at=rule).json() == {"simulations": "require"}
    refusal = call("post", data={})
    assert refusal.status_code == 409
    assert refusal.json()["error"]["code"] == "simulation_required"
    assert call("put", data={"simulations": "perhaps"}, at=rule).status_code == 400
