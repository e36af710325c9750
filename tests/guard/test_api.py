"""REST API of spending: what was spent on what, the limits, and resuming what a reached limit paused."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.guard import services
from apps.guard.enums import Intent, Pause
from apps.guard.locks import current_days
from apps.guard.models import Budget, SystemControl
from apps.guard.schemas import Admitted
from apps.tenants.enums import KeyScope
from kernel.tenancy import tenant_scope
from tests.factories.api import Api
from tests.factories.console import browser
from tests.factories.guard import make_budget, make_call, make_run

SPENDING = "/api/v1/spending"


@pytest.fixture
def api(tenant: Any) -> Api:
    return Api(tenant)


def spend(tenant: Any, amount: str, *, purpose: str) -> None:
    asked = make_call(tool=purpose, model="openai:gpt-4o-mini", estimate=Decimal(amount))
    opened = make_run(tenant)
    with tenant_scope(tenant):
        call = services.admit(opened.ref, Intent.CONVERSE, asked)
        assert isinstance(call, Admitted)
        services.settle(call, cost=Decimal(amount))


def pause_by_limit(tenant: Any) -> Budget:
    budget = make_budget(tenant, "2")
    with tenant_scope(tenant):
        Budget.objects.filter(pk=budget.pk).update(paused_in=current_days()[0], window_start=current_days()[0])
    return budget


def test_spending_is_added_up_by_day_deployment_model_and_purpose(api: Api, tenant: Any) -> None:
    spend(tenant, "0.5", purpose="proxy")
    spend(tenant, "0.25", purpose="planner")
    answer = api.get(f"{SPENDING}?days=3").json()
    assert Decimal(answer["total_usd"]) == Decimal("0.75")
    assert [Decimal(day["amount_usd"]) for day in answer["daily"]] == [0, 0, Decimal("0.75")]
    assert [row["name"] for row in answer["by_purpose"]] == ["proxy", "planner"]
    assert [row["name"] for row in answer["by_model"]] == ["openai:gpt-4o-mini"]
    assert len(answer["by_deployment"]) > 0


def test_reached_limit_is_told_and_resumed(api: Api, tenant: Any) -> None:
    pause_by_limit(tenant)
    assert [limit["is_paused"] for limit in api.get(SPENDING).json()["limits"]] == [True]
    assert api.post(f"{SPENDING}/resume").json() == {"resumed": 1}
    assert [limit["is_paused"] for limit in api.get(SPENDING).json()["limits"]] == [False]
    with tenant_scope(tenant):
        assert AuditEntry.objects.get(event=AuditEvent.SPENDING_RESUMED).actor.startswith("api_key:")
    assert api.post(f"{SPENDING}/resume").json() == {"resumed": 0}


def test_pause_of_an_administrator_is_told_and_stays(api: Api, tenant: Any) -> None:
    with tenant_scope(tenant):
        SystemControl.objects.create(pause=Pause.ALL)
    api.post(f"{SPENDING}/resume")
    assert api.get(SPENDING).json()["pauses"] == [{"deployment_id": None, "pause": "pause_all"}]


def test_other_tenants_and_keys_without_the_scope_change_nothing(api: Api, tenant: Any, other_tenant: Any) -> None:
    pause_by_limit(tenant)
    assert Api(other_tenant).post(f"{SPENDING}/resume").json() == {"resumed": 0}
    refused = Api(tenant, KeyScope.SETTINGS_READ).post(f"{SPENDING}/resume")
    assert refused.status_code == 403
    assert refused.json()["error"]["extra"]["scope"] == "settings:write"
    assert [limit["is_paused"] for limit in api.get(SPENDING).json()["limits"]] == [True]


def test_approver_reads_but_does_not_resume(tenant: Any, approver: Any, stranger: Any) -> None:
    assert browser(approver).get(SPENDING).status_code == 200
    assert browser(approver).post(f"{SPENDING}/resume").status_code == 403
    assert browser(stranger).get(SPENDING).status_code == 403
    assert browser().get(SPENDING).status_code == 401


@pytest.mark.parametrize("query", ["days=0", "days=367", "days=x", "span=7"])
def test_wrong_query_is_refused(api: Api, query: str) -> None:
    assert api.get(f"{SPENDING}?{query}").status_code == 400
