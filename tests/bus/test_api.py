"""REST API of the queue: its counts, and dead letters that are listed, retried and dropped."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from apps.audit.models import AuditEntry
from apps.tenants.enums import KeyScope
from kernel.tenancy import tenant_scope
from tests.bus.conftest import bury, row
from tests.factories.api import Api
from tests.factories.bus import make_message
from tests.factories.console import browser

DEAD = "/api/v1/dead-letters"


@pytest.fixture
def api(tenant: Any) -> Api:
    return Api(tenant)


def test_queues_are_counted_and_dead_letters_listed_without_what_they_say(api: Api, tenant: Any) -> None:
    message = bury(tenant, content="a customer's words")
    make_message(tenant, scope_id="other")
    queues = {queue["queue"]: queue for queue in api.get("/api/v1/queues").json()["queues"]}
    assert queues["executor"]["waiting"] == 1
    assert queues["executor"]["dead"] == 1
    answer = api.get(DEAD)
    assert [letter["id"] for letter in answer.json()["dead_letters"]] == [str(message.pk)]
    assert answer.json()["dead_letters"][0]["reason"] == "poison"
    assert "a customer's words" not in answer.content.decode()
    assert api.get(f"{DEAD}?queue=trusted").json()["dead_letters"] == []


def test_dead_letters_have_pages(api: Api, tenant: Any) -> None:
    for number in range(3):
        bury(tenant, scope_id=f"scope-{number}")
    page = api.get(f"{DEAD}?limit=2").json()
    rest = api.get(f"{DEAD}?limit=2&before={page['next']}").json()
    assert len(page["dead_letters"]) == 2
    assert len(rest["dead_letters"]) == 1


@pytest.mark.parametrize(("action", "state"), [("retry", "queued"), ("drop", "dropped")])
def test_dead_letter_is_decided_once_and_recorded(api: Api, tenant: Any, action: str, state: str) -> None:
    message = bury(tenant)
    assert api.post(f"{DEAD}/{message.pk}/{action}").status_code == 204
    assert row(tenant, pk=message.pk).state == state
    with tenant_scope(tenant):
        entry = AuditEntry.objects.filter(subject=f"message:{message.pk}").latest("seq")
    assert entry.actor.startswith("api_key:")
    again = api.post(f"{DEAD}/{message.pk}/{action}")
    assert again.status_code == 409
    assert again.json()["error"]["code"] == "not_dead"


@pytest.mark.parametrize("action", ["retry", "drop"])
def test_other_tenants_and_keys_without_the_scope_are_refused(
    api: Api, tenant: Any, other_tenant: Any, action: str
) -> None:
    message = bury(tenant)
    assert Api(other_tenant).post(f"{DEAD}/{message.pk}/{action}").status_code == 404
    assert api.post(f"{DEAD}/{uuid4()}/{action}").status_code == 404
    refused = Api(tenant, KeyScope.WORK_READ).post(f"{DEAD}/{message.pk}/{action}")
    assert refused.status_code == 403
    assert refused.json()["error"]["extra"]["scope"] == "work:write"
    assert row(tenant, pk=message.pk).state == "dead"


def test_approver_reads_but_does_not_decide(tenant: Any, approver: Any, stranger: Any) -> None:
    message = bury(tenant)
    client = browser(approver)
    assert client.get(DEAD).status_code == 200
    assert client.post(f"{DEAD}/{message.pk}/retry").status_code == 403
    assert browser(stranger).get(DEAD).status_code == 403


def test_unknown_filter_is_refused(api: Api) -> None:
    assert api.get(f"{DEAD}?kind=card_expiry").status_code == 400
    assert api.get(f"{DEAD}?before=x").status_code == 400
