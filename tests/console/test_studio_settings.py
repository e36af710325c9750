"""Changing a chatbot's appearance and websites, and the audit entries about it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse
from pydantic_ai import models

from apps.access.tokens import test_ticket as ticket_for
from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.inbox.queries import Asked, conversations, counts, unassigned_count
from apps.sessions.models import ChatSession
from apps.tenants.models import Deployment, Sighting
from apps.tenants.provider_keys import store_provider_key
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.console import browser
from tests.factories.sessions import make_session, say
from tests.factories.tenants import make_deployment, make_member
from tests.fakes.openai_server import FakeOpenAI, Reply, serving_in_thread

PAGES = ["console-studios", "console-studio", "console-studio-turn", "console-install"]
PRESSES = [
    "console-studio",
    "console-studio-new",
    "console-studio-turn",
    "console-studio-key",
    "console-studio-key-drop",
]
KEY = "sk-secret-of-the-house"
FILLED = {
    "title": "Help desk",
    "greeting": "Hello",
    "suggestions": "Where is my parcel?\nHow do I pay?",
    "accent": "#1f5f8b",
    "mode": "auto",
    "position": "left",
    "persona": "Short and kind.",
    "allowed_origins": "https://www.example.com",
    "model_proxy": "builtin:grounded",
    "model_planner": "builtin:grounded",
    "model_executor": "builtin:grounded",
    "hours_mon": "08:00-18:00",
    "timezone": "Europe/Berlin",
    "after_hours": "Tomorrow again.",
    "file_megabytes": "5",
    "files_each": "10",
}


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeOpenAI]:
    monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", True)
    with serving_in_thread([Reply("Yes")]) as fake:
        monkeypatch.setenv("OPENAI_BASE_URL", fake.base_url)
        yield fake


def address(name: str, place: Any) -> str:
    return reverse(name, args=[] if name in ("console-studios", "console-studio-new") else [place.pk])


def press(user: Any, name: str, place: Any, **data: Any) -> Any:
    return browser(user).post(address(name, place), data)


def saved(user: Any, place: Any, **fields: Any) -> Any:
    return press(user, "console-studio", place, **{**FILLED, **fields})


def now_of(tenant: Any, place: Any) -> Deployment:
    with tenant_scope(tenant):
        found: Deployment = Deployment.objects.get(pk=place.pk)
        return found


def written(tenant: Any, event: AuditEvent) -> list[dict[str, Any]]:
    with tenant_scope(tenant):
        return [json.loads(entry.data) for entry in AuditEntry.objects.filter(event=event).order_by("seq")]


# -- who may -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["approver", "agent", "viewer", "stranger"])
@pytest.mark.parametrize("name", PAGES)
def test_page_is_for_owners_only(deployment: Any, name: str, role: str, request: pytest.FixtureRequest) -> None:
    assert browser(request.getfixturevalue(role)).get(address(name, deployment)).status_code == 403


@pytest.mark.parametrize("role", ["approver", "agent", "viewer", "stranger"])
@pytest.mark.parametrize("name", PRESSES)
def test_press_is_for_owners_only(deployment: Any, name: str, role: str, request: pytest.FixtureRequest) -> None:
    assert press(request.getfixturevalue(role), name, deployment, **FILLED).status_code == 403


@pytest.mark.parametrize("name", PAGES[1:])
def test_page_of_another_tenant_is_not_found(deployment: Any, other_tenant: Any, name: str) -> None:
    assert browser(make_member(other_tenant, "owner")).get(address(name, deployment)).status_code == 404


@pytest.mark.parametrize(
    "name", ["console-studio", "console-studio-turn", "console-studio-key", "console-studio-key-drop"]
)
def test_press_on_another_tenants_is_not_found(deployment: Any, other_tenant: Any, name: str) -> None:
    foreigner = make_member(other_tenant, "owner")
    assert press(foreigner, name, deployment, **FILLED).status_code == 404


@pytest.mark.parametrize("name", PRESSES)
def test_press_without_csrf_token_is_refused(owner: Any, deployment: Any, name: str) -> None:
    assert browser(owner, csrf=True).post(address(name, deployment), FILLED).status_code == 403


@pytest.mark.parametrize("name", PAGES)
def test_page_without_login_leads_to_it(deployment: Any, name: str) -> None:
    assert browser().get(address(name, deployment)).status_code == 302


@pytest.mark.parametrize("name", PAGES)
def test_page_has_no_inline_script_or_style(owner: Any, deployment: Any, name: str) -> None:
    page = browser(owner).get(address(name, deployment)).content.decode()
    assert not re.search(r"<style|style=|<script(?![^>]*\bsrc=)|\son\w+=|javascript:", page)


def test_list_shows_nothing_of_another_tenant(deployment: Any, other_tenant: Any) -> None:
    page = browser(make_member(other_tenant, "owner")).get(reverse("console-studios")).content.decode()
    assert str(deployment.pk) not in page


# -- settings ------------------------------------------------------------------------------------------------------


def test_settings_are_saved(tenant: Any, owner: Any, deployment: Any) -> None:
    assert saved(owner, deployment).status_code == 302
    place = now_of(tenant, deployment)
    assert place.title == "Help desk"
    assert place.suggestions == ["Where is my parcel?", "How do I pay?"]
    assert place.theme == {"accent": "#1f5f8b", "mode": "auto", "position": "left"}
    assert place.opening_hours == {"mon": "08:00-18:00"}
    assert place.allowed_origins == ["https://www.example.com"]


def test_saving_twice_writes_once(tenant: Any, owner: Any, deployment: Any) -> None:
    saved(owner, deployment)
    saved(owner, deployment)
    assert len(written(tenant, AuditEvent.DEPLOYMENT_CHANGED)) == 1


def test_greeting_is_one_line_however_it_was_typed(tenant: Any, owner: Any, deployment: Any) -> None:
    saved(owner, deployment, greeting="Hello.\r\n  Ask away. ")
    with tenant_scope(tenant):
        assert Deployment.objects.get(pk=deployment.pk).greeting == "Hello. Ask away."


def test_change_of_a_setting_is_written_down_with_before_and_after(tenant: Any, owner: Any, deployment: Any) -> None:
    saved(owner, deployment)
    (entry,) = written(tenant, AuditEvent.DEPLOYMENT_CHANGED)
    assert entry["before"]["allowed_origins"] == ["http://site.test"]
    assert entry["after"]["allowed_origins"] == ["https://www.example.com"]
    assert "greeting" in entry["fields"]
    assert "greeting" not in entry["after"]


def test_websites_are_read_as_in_the_first_run(tenant: Any, owner: Any, deployment: Any) -> None:
    assert saved(owner, deployment, allowed_origins="localhost:8795/\nwww.Example.com/shop").status_code == 302
    assert now_of(tenant, deployment).allowed_origins == ["http://localhost:8795", "https://www.example.com"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("title", ""),
        ("allowed_origins", "https://*.example.com"),
        ("allowed_origins", "http://plain.example.com"),
        ("allowed_origins", "https://www.example.com; script-src *"),
        ("accent", "red"),
        ("mode", "loud"),
        ("hours_mon", "all day"),
        ("timezone", "Moon/Tycho"),
        ("model_proxy", "evil:model"),
        ("model_planner", ""),
        ("suggestions", "\n".join("abcdefgh")),
        ("font", "</style><script>"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_saved(
    tenant: Any, owner: Any, deployment: Any, field: str, value: str
) -> None:
    response = saved(owner, deployment, **{field: value})
    assert response.status_code == 422
    assert now_of(tenant, deployment).title == deployment.title


def test_theme_that_the_form_does_not_ask_stays(tenant: Any, owner: Any, deployment: Any) -> None:
    with tenant_scope(tenant):
        Deployment.objects.filter(pk=deployment.pk).update(theme={"font": "Georgia"})
    saved(owner, deployment, font="Georgia")
    assert now_of(tenant, deployment).theme["font"] == "Georgia"


def test_key_of_the_installation_cannot_be_taken(tenant: Any, owner: Any, deployment: Any) -> None:
    saved(owner, deployment, environment_keys="on")
    assert now_of(tenant, deployment).environment_keys is False


# -- another one, on and off -----------------------------------------------------------------------------------------


def test_second_one_is_made_like_the_first(tenant: Any, owner: Any, deployment: Any) -> None:
    saved(owner, deployment)
    with tenant_scope(tenant):
        store_provider_key(now_of_row(deployment), model="openai:small", key=KEY, actor="user:test")
    press(owner, "console-studio-new", deployment, title="Shop", like=str(deployment.pk))
    with tenant_scope(tenant):
        made = Deployment.objects.exclude(pk=deployment.pk).get()
    assert made.title == "Shop"
    assert made.theme["accent"] == "#1f5f8b"
    assert made.allowed_origins == []
    assert made.keys.of("openai:small") == KEY


def now_of_row(place: Any) -> Deployment:
    found: Deployment = Deployment.objects.get(pk=place.pk)
    return found


def test_one_like_a_foreign_one_is_refused(owner: Any, deployment: Any, other_tenant: Any) -> None:
    foreign = make_deployment(other_tenant)
    assert press(owner, "console-studio-new", deployment, title="Shop", like=str(foreign.pk)).status_code == 422


def test_switched_off_one_answers_nobody(tenant: Any, owner: Any, deployment: Any) -> None:
    press(owner, "console-studio-turn", deployment, enabled="0")
    assert Client().get(reverse("widget-appearance", args=[deployment.public_key])).status_code == 404


def test_page_of_switching_off_changes_nothing(tenant: Any, owner: Any, deployment: Any) -> None:
    browser(owner).get(address("console-studio-turn", deployment))
    assert now_of(tenant, deployment).enabled is True


# -- keys ------------------------------------------------------------------------------------------------------------


def test_key_that_works_is_kept_and_never_shown(tenant: Any, owner: Any, deployment: Any, provider: FakeOpenAI) -> None:
    press(owner, "console-studio-key", deployment, provider="openai", model="small", key=KEY)
    assert now_of(tenant, deployment).keys.of("openai:small") == KEY
    assert KEY not in browser(owner).get(address("console-studio", deployment)).content.decode()


def test_same_key_twice_is_written_once(tenant: Any, owner: Any, deployment: Any, provider: FakeOpenAI) -> None:
    for _ in range(2):
        press(owner, "console-studio-key", deployment, provider="openai", model="small", key=KEY)
    assert written(tenant, AuditEvent.PROVIDER_KEY_STORED) == [{"provider": "openai"}]


def test_removed_key_is_gone(tenant: Any, owner: Any, deployment: Any, provider: FakeOpenAI) -> None:
    press(owner, "console-studio-key", deployment, provider="openai", model="small", key=KEY)
    press(owner, "console-studio-key-drop", deployment, provider="openai")
    assert now_of(tenant, deployment).sealed_keys == {}


def test_key_that_is_not_there_is_not_found(owner: Any, deployment: Any) -> None:
    assert press(owner, "console-studio-key-drop", deployment, provider="openai").status_code == 404


# -- test chats ------------------------------------------------------------------------------------------------------


def begin(place: Any, ticket: str) -> ChatSession:
    answer = Client().post(
        f"/api/v1/widget/{place.public_key}/sessions", {"test_ticket": ticket}, content_type="application/json"
    )
    with tenant_scope(place.tenant_id):
        found: ChatSession = ChatSession.objects.get(pk=answer.json()["session_id"])
        return found


def test_chat_begun_with_a_ticket_is_a_test(deployment: Any) -> None:
    assert begin(deployment, ticket_for(deployment.public_key)).is_test is True


@pytest.mark.parametrize("forged", ["", "x", "key:1:abc"])
def test_chat_begun_without_a_good_ticket_is_a_visitors(deployment: Any, forged: str) -> None:
    assert begin(deployment, forged).is_test is False


def test_ticket_of_another_deployment_makes_no_test(tenant: Any, deployment: Any) -> None:
    assert begin(deployment, ticket_for(make_deployment(tenant).public_key)).is_test is False


def test_test_stands_in_no_list_and_no_count(tenant: Any, owner: Any, deployment: Any) -> None:
    session = make_session(deployment)
    say(session, "Hello")
    with tenant_scope(tenant):
        ChatSession.objects.filter(pk=session.pk).update(is_test=True, wanted_person_at=now())
        assert conversations(Asked(), owner).rows == ()
        assert unassigned_count() == 0
        assert set(counts(owner, Asked()).values()) == {0}


# -- on a site -------------------------------------------------------------------------------------------------------


def test_pinned_line_fits_what_is_served(owner: Any, deployment: Any) -> None:
    page = browser(owner).get(address("console-install", deployment)).content.decode()
    digest = base64.b64encode(hashlib.sha384(Client().get(reverse("widget-loader")).content).digest()).decode()
    assert f"sha384-{digest}".replace("+", "&#x2B;") in page or f"sha384-{digest}" in page


def test_every_site_builder_has_its_line(owner: Any, deployment: Any) -> None:
    page = browser(owner).get(address("console-install", deployment)).content.decode()
    names = ("WordPress", "Shopify", "Squarespace", "Wix", "Webflow", "Google Tag Manager", "Plain HTML")
    assert all(f"Copy for {name}" in page for name in names)


def loaded(place: Any, referer: str) -> None:
    Client().get(reverse("widget-frame", args=[place.public_key]), headers={"Referer": referer})


def seen(place: Any) -> list[str]:
    with tenant_scope(place.tenant_id):
        return list(Sighting.objects.filter(deployment=place).values_list("origin", flat=True))


def test_site_that_loads_the_chat_is_seen(owner: Any, deployment: Any) -> None:
    loaded(deployment, "http://site.test/basket?x=1")
    assert "loaded" in browser(owner).get(address("console-install", deployment)).content.decode()


@pytest.mark.parametrize("referer", ["http://evil.test/", "", "http://site.test.evil/", "x", "http://[/"])
def test_other_sites_leave_no_trace(deployment: Any, referer: str) -> None:
    loaded(deployment, referer)
    assert seen(deployment) == []


def test_site_is_seen_once_a_minute(deployment: Any) -> None:
    loaded(deployment, "http://site.test/")
    with tenant_scope(deployment.tenant_id):
        before = Sighting.objects.get().last_at
    loaded(deployment, "http://site.test/")
    with tenant_scope(deployment.tenant_id):
        assert Sighting.objects.get().last_at == before


def test_unknown_deployment_is_not_found(owner: Any) -> None:
    assert browser(owner).get(reverse("console-studio", args=[uuid4()])).status_code == 404
