"""How long cards wait, over the REST API: of the company, and of one chatbot."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings

from apps.approvals.enums import Pace
from apps.approvals.queries import card_lifetime
from apps.tenants.enums import KeyScope
from kernel.tenancy import tenant_scope
from tests.factories.api import Api, code
from tests.factories.audit import changes
from tests.factories.tenants import make_deployment, make_member

COMPANY = "/api/v1/card-timings"
NONE = {"gate": None, "plan": None, "calm": None}


def of(deployment_id: object) -> str:
    return f"/api/v1/deployments/{deployment_id}/card-timings"


def test_chatbot_inherits_from_the_company_and_that_from_the_installation(tenant: Any, other_tenant: Any) -> None:
    api, chatbot = Api(tenant), make_deployment(tenant)
    installation = {pace.value: settings.CARD_SECONDS[pace] for pace in Pace}
    assert api.get(COMPANY).json() == {**NONE, "inherited": installation}
    assert api.patch(COMPANY, {"plan": 600, "calm": 7200}).json()["plan"] == 600
    assert api.get(of(chatbot.pk)).json() == {**NONE, "inherited": installation | {"plan": 600, "calm": 7200}}
    assert api.patch(of(chatbot.pk), {"plan": 60}).json()["plan"] == 60
    assert api.patch(COMPANY, {"calm": None}).json() == {**NONE, "plan": 600, "inherited": installation}
    with tenant_scope(tenant):
        assert card_lifetime(Pace.PLAN, chatbot.pk) == 60
        assert card_lifetime(Pace.CALM, chatbot.pk) == installation["calm"]
    assert Api(other_tenant).get(COMPANY).json() == {**NONE, "inherited": installation}
    assert [entry["change"] for entry in changes(tenant)] == ["added", "added", "added", "deleted"]


def test_change_of_an_older_version_is_refused(tenant: Any) -> None:
    api = Api(tenant)
    assert api.patch(COMPANY, {"plan": 600}).status_code == 200
    read = api.get(COMPANY)["ETag"]
    assert api.patch(COMPANY, {"plan": 700}, if_match=read).status_code == 200
    assert code(api.patch(COMPANY, {"plan": 800}, if_match=read)) == (412, "changed_meanwhile")
    assert api.get(COMPANY).json()["plan"] == 700


def test_foreign_and_unknown_chatbot_is_not_found(tenant: Any, other_tenant: Any) -> None:
    for chatbot in (make_deployment(other_tenant).pk, uuid4()):
        assert code(Api(tenant).get(of(chatbot))) == (404, "not_found")
        assert code(Api(tenant).patch(of(chatbot), {"plan": 60})) == (404, "not_found")
    assert changes(other_tenant) == []


@pytest.mark.parametrize("is_company", [True, False])
def test_roles_and_scopes(tenant: Any, owner: Any, is_company: bool) -> None:
    path = COMPANY if is_company else of(make_deployment(tenant).pk)
    assert Api(tenant, member=owner).patch(path, {}).status_code == 200
    for role in ("approver", "agent", "viewer"):
        member = Api(tenant, member=make_member(tenant, role))
        assert code(member.get(path)) == (403, "forbidden_role")
        assert code(member.patch(path, {})) == (403, "forbidden_role")
    reader = Api(tenant, KeyScope.SETTINGS_READ)
    assert reader.get(path).status_code == 200
    assert code(reader.patch(path, {})) == (403, "forbidden_scope")


@pytest.mark.parametrize(
    "body", [{"plan": 9}, {"plan": 30 * 86_400 + 1}, {"plan": "soon"}, {"plan": [60]}, {"pace": 60}]
)
def test_wrong_time_is_refused(tenant: Any, body: dict[str, Any]) -> None:
    assert code(Api(tenant).patch(COMPANY, body)) == (400, "invalid")
    assert changes(tenant) == []
