"""The company's own prices of models, in the console and over the REST API."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.urls import reverse

from apps.guard.models import ModelPrice
from apps.tenants.enums import KeyScope
from kernel.tenancy import tenant_scope
from tests.factories.api import Api, code
from tests.factories.audit import changes
from tests.factories.console import browser
from tests.factories.tenants import make_member

PRICES = "/api/v1/model-prices"
MODEL = "openai:own-model"
BODY = {"model": MODEL, "input_per_million": "0.075", "output_per_million": "3"}
TYPED = {**BODY, "cache_read_per_million": "", "cache_write_per_million": ""}


def prices(tenant: Any) -> list[ModelPrice]:
    with tenant_scope(tenant):
        return list(ModelPrice.objects.order_by("model"))


def test_price_is_set_changed_removed_and_recorded(tenant: Any, other_tenant: Any) -> None:
    api = Api(tenant)
    made = api.post(PRICES, BODY)
    assert made.status_code == 200
    assert made.json()["input_per_million"] == "0.075"
    assert made.json()["cache_read_per_million"] is None
    assert api.post(PRICES, BODY).json() == made.json()
    changed = api.post(PRICES, {**BODY, "cache_read_per_million": "0.01"})
    assert changed.json()["id"] == made.json()["id"]
    assert [price["model"] for price in api.get(PRICES).json()] == [MODEL]
    assert Api(other_tenant).get(PRICES).json() == []
    assert api.delete(f"{PRICES}/{made.json()['id']}").status_code == 204
    assert prices(tenant) == []
    assert [entry["change"] for entry in changes(tenant)] == ["added", "changed", "deleted"]
    assert changes(tenant)[0]["after"] == {"input_per_million": "0.075", "output_per_million": "3"}
    assert changes(tenant)[1]["fields"] == ["cache_read_per_million"]
    assert changes(tenant)[1]["after"] == {"cache_read_per_million": "0.01"}


def test_foreign_and_unknown_price_is_not_found(tenant: Any, other_tenant: Any) -> None:
    foreign = Api(other_tenant).post(PRICES, BODY).json()["id"]
    assert code(Api(tenant).delete(f"{PRICES}/{foreign}")) == (404, "not_found")
    assert code(Api(tenant).delete(f"{PRICES}/{uuid4()}")) == (404, "not_found")
    assert len(prices(other_tenant)) == 1


def test_roles_and_scopes(tenant: Any, owner: Any) -> None:
    price = Api(tenant, member=owner).post(PRICES, BODY).json()["id"]
    for role in ("approver", "agent", "viewer"):
        user = make_member(tenant, role)
        member = Api(tenant, member=user)
        assert code(member.get(PRICES)) == (403, "forbidden_role")
        assert code(member.post(PRICES, BODY)) == (403, "forbidden_role")
        assert code(member.delete(f"{PRICES}/{price}")) == (403, "forbidden_role")
        assert browser(user).post(reverse("console-prices"), TYPED).status_code == 403
        assert browser(user).post(reverse("console-price-remove", args=[price])).status_code == 403
    reader = Api(tenant, KeyScope.SETTINGS_READ)
    assert reader.get(PRICES).status_code == 200
    assert code(reader.post(PRICES, BODY)) == (403, "forbidden_scope")


@pytest.mark.parametrize(
    "wrong",
    [
        {"model": "builtin:grounded"},
        {"model": "no provider"},
        {"model": ""},
        {"input_per_million": "-1"},
        {"input_per_million": "NaN"},
        {"input_per_million": "0.0000000001"},
        {"input_per_million": "1e12"},
        {"output_per_million": None},
        {"cache_read_per_million": "-0.1"},
        {"cache_write_per_million": [1]},
        {"tenant": "x"},
    ],
)
def test_wrong_price_is_refused(tenant: Any, wrong: dict[str, Any]) -> None:
    assert code(Api(tenant).post(PRICES, {**BODY, **wrong})) == (400, "invalid")
    assert prices(tenant) == []


def test_owner_sets_edits_and_removes_a_price_on_the_page(tenant: Any, owner: Any) -> None:
    address, desk = reverse("console-prices"), browser(owner)
    assert b"No custom prices yet" in desk.get(address).content
    assert desk.post(address, TYPED).status_code == 302
    shown = desk.get(address).content.decode()
    assert "$0.075" in shown
    assert "as input" in shown
    filled = desk.get(address, {"model": MODEL}).content.decode()
    assert 'value="0.075"' in filled
    wrong = desk.post(address, {**TYPED, "model": "ollama:free", "input_per_million": "-1"})
    assert wrong.status_code == 422
    assert b"Enter provider:model" in wrong.content
    assert desk.post(address, {**TYPED, "input_per_million": "0.125"}).status_code == 302
    [price] = prices(tenant)
    assert price.input_per_million == Decimal("0.125")
    assert "$0.125" in desk.get(address).content.decode()
    assert desk.post(reverse("console-price-remove", args=[price.pk])).status_code == 302
    assert prices(tenant) == []
    assert desk.post(reverse("console-price-remove", args=[price.pk])).status_code == 404
