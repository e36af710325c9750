"""REST API of the queue: its counts, and dead letters that are listed, retried and dropped."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from apps.audit.models import AuditEntry
from apps.bus import services
from apps.tenants.enums import KeyScope
from apps.tenants.services import create_api_key
from kernel.tenancy import tenant_scope
from tests.bus.conftest import held, row
from tests.factories.bus import make_message
from tests.factories.console import browser

DEAD = "/api/v1/dead-letters"


def _key(tenant: Any, *scopes: KeyScope) -> str:
    with tenant_scope(tenant):
        return create_api_key("queue", scopes=scopes).key


@pytest.fixture
def call(tenant: Any) -> Any:
    own = _key(tenant)

    def send(method: str, address: str, *, key: str = own) -> Any:
        headers = {"Authorization": f"Bearer {key}"}
        return getattr(Client(), method)(address, content_type="application/json", headers=headers)

    return send


def bury(tenant: Any, **fields: Any) -> Any:
    message = make_message(tenant, **fields)
    with tenant_scope(tenant):
        services.dead_letter(held(tenant, scope_id=message.scope_id), "poison")
    return message


def test_queues_are_counted_and_dead_letters_listed_without_what_they_say(call: Any, tenant: Any) -> None:
    message = bury(tenant, content="a customer's words")
    make_message(tenant, scope_id="other")
    queues = {queue["queue"]: queue for queue in call("get", "/api/v1/queues").json()["queues"]}
    assert queues["executor"]["waiting"] == 1
    assert queues["executor"]["dead"] == 1
    answer = call("get", DEAD)
    assert [letter["id"] for letter in answer.json()["dead_letters"]] == [str(message.pk)]
    assert answer.json()["dead_letters"][0]["reason"] == "poison"
    assert "a customer's words" not in answer.content.decode()
    assert call("get", f"{DEAD}?queue=trusted").json()["dead_letters"] == []


def test_dead_letters_have_pages(call: Any, tenant: Any) -> None:
    for number in range(3):
        bury(tenant, scope_id=f"scope-{number}")
    page = call("get", f"{DEAD}?limit=2").json()
    rest = call("get", f"{DEAD}?limit=2&before={page['next']}").json()
    assert len(page["dead_letters"]) == 2
    assert len(rest["dead_letters"]) == 1


@pytest.mark.parametrize(("action", "state"), [("retry", "queued"), ("drop", "dropped")])
def test_dead_letter_is_decided_once_and_recorded(call: Any, tenant: Any, action: str, state: str) -> None:
    message = bury(tenant)
    assert call("post", f"{DEAD}/{message.pk}/{action}").status_code == 204
    assert row(tenant, pk=message.pk).state == state
    with tenant_scope(tenant):
        entry = AuditEntry.objects.filter(subject=f"message:{message.pk}").latest("seq")
    assert entry.actor.startswith("api_key:")
    again = call("post", f"{DEAD}/{message.pk}/{action}")
    assert again.status_code == 409
    assert again.json()["error"]["code"] == "not_dead"


@pytest.mark.parametrize("action", ["retry", "drop"])
def test_other_tenants_and_keys_without_the_scope_are_refused(
    call: Any, tenant: Any, other_tenant: Any, action: str
) -> None:
    message = bury(tenant)
    assert call("post", f"{DEAD}/{message.pk}/{action}", key=_key(other_tenant)).status_code == 404
    assert call("post", f"{DEAD}/{uuid4()}/{action}").status_code == 404
    refused = call("post", f"{DEAD}/{message.pk}/{action}", key=_key(tenant, KeyScope.WORK_READ))
    assert refused.status_code == 403
    assert refused.json()["error"]["extra"]["scope"] == "work:write"
    assert row(tenant, pk=message.pk).state == "dead"


def test_approver_reads_but_does_not_decide(tenant: Any, approver: Any, stranger: Any) -> None:
    message = bury(tenant)
    client = browser(approver)
    assert client.get(DEAD).status_code == 200
    assert client.post(f"{DEAD}/{message.pk}/retry").status_code == 403
    assert browser(stranger).get(DEAD).status_code == 403


def test_unknown_filter_is_refused(call: Any) -> None:
    assert call("get", f"{DEAD}?kind=card_expiry").status_code == 400
    assert call("get", f"{DEAD}?before=x").status_code == 400
