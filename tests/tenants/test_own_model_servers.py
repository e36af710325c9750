"""Models of a server with an address of its own: set up in the console and over the REST API, and asked there alone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import reverse
from pydantic_ai import models

from apps.guard.models import ModelPrice
from apps.tenants.models import Deployment
from apps.tenants.provider_keys import copy_provider_keys, server_addresses, store_provider_key
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from llm.failures import ProviderFailed
from llm.model_check import check_model, list_models
from tests.factories.api import Api, code
from tests.factories.console import browser
from tests.factories.tenants import make_deployment
from tests.fakes.openai_server import FakeOpenAI, Reply, serving_in_thread

KEY = "sk-of-the-server"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[FakeOpenAI]:
    """A server in the private network, which the operator allows."""
    monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", True)
    with serving_in_thread([Reply("Yes")]) as fake:
        fake.models = ["small", "large", "a" * 121]
        settings.EGRESS_PRIVATE = [fake.base_url.removeprefix("http://").partition("/")[0]]
        yield fake


@pytest.fixture
def place(tenant: Any) -> Deployment:
    return make_deployment(tenant)


def press(user: Any, place: Any, **typed: str) -> Any:
    return browser(user).post(reverse("console-studio-key", args=[place.pk]), typed)


def stored(tenant: Any, place: Deployment) -> Deployment:
    with tenant_scope(tenant):
        return Deployment.objects.get(pk=place.pk)


@pytest.mark.parametrize(
    ("provider", "responses"),
    [("compatible", False), ("compatible-responses", True), ("ollama", False), ("azure", False)],
)
def test_server_is_tested_and_kept(
    tenant: Any, owner: Any, place: Any, server: FakeOpenAI, provider: str, responses: bool
) -> None:
    answer = press(owner, place, provider=provider, model="small", address=server.base_url, key=KEY)
    assert answer.status_code == 302, answer.content.decode()
    assert ("input" in server.requests[0]) is responses
    assert server.keys == [KEY]
    row = stored(tenant, place)
    assert row.keys.of(f"{provider}:other") == f"{server.base_url} {KEY}"
    assert KEY not in str(row.sealed_keys)
    assert server.base_url not in str(row.sealed_keys)
    page = browser(owner).get(reverse("console-studio", args=[place.pk])).content.decode()
    assert server.base_url in page
    assert KEY not in page


def test_server_needs_no_key(tenant: Any, owner: Any, place: Any, server: FakeOpenAI) -> None:
    assert press(owner, place, provider="compatible", model="small", address=server.base_url).status_code == 302
    row = stored(tenant, place)
    assert server_addresses(row) == {"compatible": server.base_url}


def test_cost_of_the_test_is_said(tenant: Any, owner: Any, place: Any, server: FakeOpenAI) -> None:
    desk, address = browser(owner), reverse("console-studio-key", args=[place.pk])
    typed = {"provider": "compatible", "model": "small", "address": server.base_url, "key": KEY}
    assert "Its price is unknown" in desk.post(address, typed, follow=True).content.decode()
    with tenant_scope(tenant):
        ModelPrice.objects.create(model="compatible:small", input_per_million=1_000_000, output_per_million=1_000_000)
    page = desk.post(address, typed, follow=True).content.decode()
    assert "and cost $" in page
    assert "Its price is unknown" not in page


def test_models_of_the_server_are_listed_and_nothing_is_kept(
    tenant: Any, owner: Any, place: Any, server: FakeOpenAI
) -> None:
    answer = press(owner, place, provider="compatible", address=server.base_url, key=KEY, lists="1")
    page = answer.content.decode()
    assert answer.status_code == 200
    assert '<option value="large"></option><option value="small"></option></datalist>' in page
    assert "The server offers 2 models." in page
    assert KEY not in page
    assert stored(tenant, place).sealed_keys == {}


def test_first_run_takes_a_server_of_ones_own(tenant: Any, owner: Any, server: FakeOpenAI) -> None:
    desk = browser(owner)
    desk.get(reverse("console-begin"))
    typed = {"kind": "provider", "provider": "compatible", "address": server.base_url, "key": ""}
    listed = desk.post(reverse("console-begin-model"), {**typed, "lists": "1"})
    assert "The server offers 2 models." in listed.content.decode()
    assert desk.post(reverse("console-begin-model"), {**typed, "model": "large"}).status_code == 302
    with tenant_scope(tenant):
        row = Deployment.objects.get(slug="main")
    assert row.model_names["proxy"] == "compatible:large"
    assert row.keys.of("compatible:large") == f"{server.base_url} "


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"provider": "compatible", "address": ""}, "Enter the address of the server."),
        ({"provider": "azure", "address": ""}, "Enter the address of the server."),
        ({"provider": "compatible", "address": "llm"}, "This isn&#x27;t an address"),
        ({"provider": "compatible", "address": "http://llm.example.com/v1"}, "must start with https"),
        ({"provider": "compatible", "address": "http://10.0.0.7:8000/v1"}, "SILAS_EGRESS_PRIVATE=10.0.0.7:8000"),
        ({"provider": "compatible", "address": "http://169.254.169.254/v1"}, "isn&#x27;t a public address"),
        ({"provider": "compatible", "address": "https://a:b@llm.example.com/v1"}, "This isn&#x27;t an address"),
        ({"provider": "openai", "address": "https://llm.example.com/v1"}, "has an address of its own"),
        (
            {"provider": "compatible", "address": "https://llm.example.com/v1", "key": "a b"},
            "isn&#x27;t a valid API key",
        ),
        # An address in place of a key is not called, neither with TLS nor without.
        ({"provider": "openai", "key": "http://llm.example.com/v1"}, "isn&#x27;t a valid API key"),
        ({"provider": "openai", "key": "https://llm.example.com/v1"}, "isn&#x27;t a valid API key"),
    ],
)
def test_wrong_address_is_refused(tenant: Any, owner: Any, place: Any, typed: dict[str, str], said: str) -> None:
    answer = press(owner, place, **{"model": "small", "key": KEY, **typed})
    assert answer.status_code == 422
    assert said in answer.content.decode()
    assert stored(tenant, place).sealed_keys == {}


def test_private_server_that_is_no_longer_allowed_is_not_called(server: FakeOpenAI, settings: Any) -> None:
    settings.EGRESS_PRIVATE = []
    credential = f"{server.base_url} {KEY}"
    with pytest.raises(ProviderFailed) as refused:
        asyncio.run(check_model("compatible:small", key=credential))
    assert refused.value.reason == "connection_lost"
    with pytest.raises(ProviderFailed):
        asyncio.run(list_models("compatible", key=credential))
    assert server.keys == []


def test_own_server_without_an_address_is_refused(server: FakeOpenAI) -> None:
    with pytest.raises(ProviderFailed) as refused:
        asyncio.run(check_model("compatible:small", key=KEY))
    assert refused.value.reason == "no_provider_address"


def test_copy_of_a_chatbot_gets_the_server(tenant: Any, place: Any, settings: Any) -> None:
    other = make_deployment(tenant)
    with tenant_scope(tenant):
        store_provider_key(place, model="compatible:x", key=KEY, address="https://llm.example.com/v1", actor="user:1")
        copy_provider_keys(place, other, actor="user:1")
        with pytest.raises(SilasError):
            store_provider_key(place, model="compatible:x", key=KEY, actor="user:1")
    assert server_addresses(stored(tenant, other)) == {"compatible": "https://llm.example.com/v1"}


def test_server_over_the_api(tenant: Any, place: Any, server: FakeOpenAI) -> None:
    api, path = Api(tenant), f"/api/v1/deployments/{place.pk}"
    body = {"model": "compatible:small", "key": KEY, "address": server.base_url}
    saved = api.put(f"{path}/provider-keys", body)
    assert saved.json()["provider_addresses"] == {"compatible": server.base_url}
    assert KEY.encode() not in saved.content
    refused = api.put(f"{path}/provider-keys", {**body, "address": "http://10.0.0.7:8000/v1"})
    assert code(refused) == (422, "bad_provider_key")
    assert api.delete(f"{path}/provider-keys/compatible").status_code == 204
