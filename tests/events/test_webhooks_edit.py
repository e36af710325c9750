"""A webhook is changed and turned off over the REST API."""

from __future__ import annotations

from typing import Any

import pytest

from apps.autonomy.models import Outbox
from apps.events.services import emit
from apps.tenants.enums import KeyScope
from kernel.tenancy import tenant_scope
from tests.factories.api import Api, code
from tests.factories.tenants import make_member

HOOKS = "/api/v1/webhooks"
URL = "https://hooks.example.com/x"


@pytest.fixture
def api(tenant: Any) -> Api:
    make_member(tenant, "owner")
    return Api(tenant)


@pytest.fixture
def hook(api: Api) -> str:
    made = api.post(HOOKS, {"url": URL, "events": ["card.created"]}).json()
    return f"{HOOKS}/{made['id']}"


def test_webhook_is_turned_off_and_receives_nothing(tenant: Any, api: Api, hook: str) -> None:
    read = api.get(hook)
    changed = api.patch(hook, {"enabled": False}, if_match=read["ETag"])
    stale = api.patch(hook, {"enabled": True}, if_match=read["ETag"])
    with tenant_scope(tenant):
        emit("card.created", card=hook.rpartition("/")[2], kind="gate", state="open", risk="low")
    assert changed.json() == {**read.json(), "enabled": False}
    assert code(stale) == (412, "changed_meanwhile")
    with tenant_scope(tenant):
        assert not Outbox.objects.exists()


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        ({"colour": "red"}, (400, "invalid")),
        ({"url": "ftp://hooks.example.com"}, (422, "webhook_url")),
        ({"events": ["nothing"]}, (422, "webhook_events")),
    ],
)
def test_wrong_change_is_refused(api: Api, hook: str, body: dict[str, Any], refusal: tuple[int, str]) -> None:
    assert code(api.patch(hook, body)) == refusal
    assert api.get(hook).json()["url"] == URL


def test_limited_key_redirects_no_events_that_it_may_not_read(tenant: Any, hook: str) -> None:
    limited = Api(tenant, KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE)
    assert code(limited.patch(hook, {"url": "https://elsewhere.example.com/x"})) == (403, "forbidden_scope")


def test_webhook_of_another_company_is_not_found(other_tenant: Any, hook: str) -> None:
    make_member(other_tenant, "owner")
    foreign = Api(other_tenant)
    assert code(foreign.get(hook)) == (404, "not_found")
    assert code(foreign.patch(hook, {"enabled": False})) == (404, "not_found")


def test_other_roles_change_no_webhook(tenant: Any, hook: str) -> None:
    assert code(Api(tenant, member=make_member(tenant, "approver")).patch(hook, {})) == (403, "forbidden_role")
