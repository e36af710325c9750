"""Deployments over the REST API: create, change, provider keys, code for websites, styles and preferences."""

from __future__ import annotations

from typing import Any

import pytest

from apps.audit.models import AuditEntry
from apps.autonomy.enums import ProposalState
from apps.suggestions.models import Preference
from apps.tenants import provider_keys
from apps.tenants.enums import KeyScope
from apps.tenants.models import Deployment
from apps.visitors import chatbots
from kernel.tenancy import tenant_scope
from tests.factories.api import Api, code
from tests.factories.tenants import make_deployment, make_member

PLACES = "/api/v1/deployments"


@pytest.fixture
def api(tenant: Any) -> Api:
    make_member(tenant, "owner")
    return Api(tenant, KeyScope.DEPLOYMENTS_READ, KeyScope.DEPLOYMENTS_WRITE)


@pytest.fixture
def place(tenant: Any) -> Deployment:
    return make_deployment(tenant)


@pytest.fixture
def path(place: Deployment) -> str:
    return f"{PLACES}/{place.pk}"


def stored(tenant: Any, place: Deployment) -> Deployment:
    with tenant_scope(tenant):
        return Deployment.objects.get(pk=place.pk)


def test_chatbot_is_created_like_another_one(api: Api, path: str) -> None:
    api.patch(path, {"greeting": "Hello!", "offers": {"pictures": True}, "questions": [{"kind": "text", "label": "A"}]})
    made = api.post(PLACES, {"title": "Shop", "like": path.rpartition("/")[2]})
    assert made.status_code == 201
    assert made.json()["greeting"] == "Hello!"
    assert made.json()["offers"]["pictures"] is True
    assert [question["label"] for question in made.json()["questions"]] == ["A"]
    assert api.get(f"{PLACES}/{made.json()['id']}")["ETag"] == made["ETag"]


def test_number_of_chatbots_is_limited(api: Api, place: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chatbots, "MOST_DEPLOYMENTS", 1)
    assert code(api.post(PLACES, {"title": "Shop"})) == (409, "deployments_full")


def test_settings_are_changed_by_their_etag_and_stay_otherwise(tenant: Any, api: Api, path: str, place: Any) -> None:
    read = api.get(path)
    changed = api.patch(path, {"enabled": False, "theme": {"accent": "#123456"}}, if_match=read["ETag"])
    stale = api.patch(path, {"title": "Other"}, if_match=read["ETag"])
    assert changed.json()["enabled"] is False
    assert changed.json()["theme"] == {"accent": "#123456"}
    assert changed.json()["models"] == read.json()["models"]
    assert code(stale) == (412, "changed_meanwhile")
    assert stored(tenant, place).title == place.title
    with tenant_scope(tenant):
        entry = AuditEntry.objects.get(event="deployment_changed")
    assert entry.actor == api.actor


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        ({"colour": "red"}, "invalid"),
        ({"title": ""}, "invalid"),
        ({"enabled": "maybe"}, "invalid"),
        ({"slug": "other"}, "invalid"),
        ({"theme": {"accent": "red"}}, "invalid_deployment"),
        ({"models": {"proxy": "none"}}, "invalid_deployment"),
        ({"allowed_origins": ["example.com"]}, "invalid_deployment"),
        ({"offers": {"rating": "hearts"}}, "invalid_offers"),
        ({"offers": {"gifts": True}}, "invalid"),
        ({"questions": [{"kind": "choice", "label": "A"}]}, "invalid_form"),
    ],
)
def test_wrong_setting_is_refused_and_nothing_is_changed(
    tenant: Any, api: Api, path: str, place: Any, body: dict[str, Any], refusal: str
) -> None:
    assert code(api.patch(path, {"greeting": "New", **body})) == (400, refusal)
    assert stored(tenant, place).greeting == place.greeting


def test_provider_key_is_tested_stored_and_removed(
    tenant: Any, api: Api, path: str, place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answers(model: str, *, key: str | None) -> None:
        assert model == "openai:gpt-5-mini"
        assert key == "sk-1"

    monkeypatch.setattr(provider_keys, "check_model", answers)
    saved = api.put(f"{path}/provider-keys", {"model": "openai:gpt-5-mini", "key": "sk-1"})
    assert saved.json()["provider_keys"] == ["openai"]
    assert b"sk-1" not in saved.content
    assert api.delete(f"{path}/provider-keys/openai").status_code == 204
    assert code(api.delete(f"{path}/provider-keys/openai")) == (404, "not_found")
    assert stored(tenant, place).sealed_keys == {}


@pytest.mark.parametrize("model", ["builtin:grounded", "none", "nobody:model"])
def test_key_of_no_provider_is_refused(api: Api, path: str, model: str) -> None:
    refused = api.put(f"{path}/provider-keys", {"model": model, "key": "sk-1"})
    assert code(refused) == (422, "bad_provider_key")


def test_code_for_websites_is_read(api: Api, path: str, place: Deployment) -> None:
    read = api.get(f"{path}/install").json()
    assert place.public_key in read["snippet"]
    assert read["integrity"].startswith("sha384-")
    assert read["content_security_policy"] == ["script-src http://testserver", "frame-src http://testserver"]


def test_styles_are_compared_and_nothing_is_saved(tenant: Any, api: Api, path: str, place: Any) -> None:
    body = {"question": "What do you sell?", "persona": "Short.", "preset": "chill", "axes": {"warmth": 0.9}}
    compared = api.post(f"{path}/compare-styles", body)
    assert compared.status_code == 200
    assert compared.json()["follows"] is False
    assert code(api.post(f"{path}/compare-styles", {**body, "axes": {"height": 1}})) == (400, "invalid")
    assert code(api.post(f"{path}/compare-styles", {**body, "axes": {"warmth": 2}})) == (400, "invalid")
    assert stored(tenant, place).persona == place.persona


def test_preference_is_turned_off(tenant: Any, api: Api, path: str, place: Any) -> None:
    with tenant_scope(tenant):
        row = Preference.objects.create(deployment=place, key="behavior:x", content="Ask first.", sample_size=9, hits=8)
    (listed,) = api.get(f"{path}/preferences").json()["preferences"]
    assert listed["content"] == "Ask first."
    assert api.delete(f"{path}/preferences/{row.pk}").status_code == 204
    assert api.get(f"{path}/preferences").json()["preferences"] == []
    with tenant_scope(tenant):
        row.refresh_from_db()
        entry = AuditEntry.objects.get(event="proposal_decided")
    assert row.state == ProposalState.DISMISSED
    assert entry.actor == api.actor


def test_nothing_of_another_company_is_found(other_tenant: Any, path: str, place: Deployment) -> None:
    foreign = Api(other_tenant)
    assert code(foreign.patch(path, {"title": "Mine"})) == (404, "not_found")
    assert code(foreign.post(PLACES, {"title": "Copy", "like": str(place.pk)})) == (404, "not_found")
    assert code(foreign.put(f"{path}/provider-keys", {"model": "openai:x", "key": "sk"})) == (404, "not_found")
    assert code(foreign.delete(f"{path}/provider-keys/openai")) == (404, "not_found")
    assert code(foreign.get(f"{path}/install")) == (404, "not_found")
    assert code(foreign.get(f"{path}/preferences")) == (404, "not_found")
    assert code(foreign.delete(f"{path}/preferences/{place.pk}")) == (404, "not_found")
    assert code(foreign.post(f"{path}/compare-styles", {"question": "Hello?"})) == (404, "not_found")


def test_reader_and_approver_change_nothing(tenant: Any, path: str) -> None:
    reader, approver = Api(tenant, KeyScope.DEPLOYMENTS_READ), Api(tenant, member=make_member(tenant, "approver"))
    assert code(reader.patch(path, {"title": "Mine"})) == (403, "forbidden_scope")
    assert code(reader.post(PLACES, {"title": "Mine"})) == (403, "forbidden_scope")
    assert code(approver.patch(path, {"title": "Mine"})) == (403, "forbidden_role")
    assert code(approver.get(f"{path}/install")) == (403, "forbidden_role")
