"""The personality of a chatbot in the studio and over the API."""

from __future__ import annotations

import html
import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pydantic_ai import models

from apps.guard.models import ToolCall
from apps.persona.queries import state_of
from kernel.tenancy import tenant_scope
from tests.console.test_studio_settings import saved
from tests.factories.console import browser
from tests.factories.tenants import make_deployment, make_member
from tests.fakes.openai_server import Reply, direct, serving_in_thread


def axes_of(tenant: Any, deployment: Any) -> tuple[str, dict[str, float]]:
    with tenant_scope(tenant):
        state = state_of(deployment.pk)
    assert state is not None
    return state.active_preset, state.baseline_axes


def test_preset_is_saved_and_shown_again(tenant: Any, owner: Any, deployment: Any) -> None:
    assert saved(owner, deployment, preset="work").status_code == 302
    assert axes_of(tenant, deployment)[0] == "work"
    page = browser(owner).get(reverse("console-studio", args=[deployment.pk])).content.decode()
    assert '<option value="work" selected>' in page


def test_moved_slider_makes_the_style_custom(tenant: Any, owner: Any, deployment: Any) -> None:
    saved(owner, deployment, preset="work")
    saved(owner, deployment, preset="work", axis_humor="80")
    preset, axes = axes_of(tenant, deployment)
    assert preset == "custom"
    assert axes["humor"] == 0.8
    assert axes["formality"] == 0.7


def test_saving_other_settings_creates_no_personality(tenant: Any, owner: Any, deployment: Any) -> None:
    saved(owner, deployment)
    with tenant_scope(tenant):
        assert state_of(deployment.pk) is None


def test_value_out_of_range_saves_nothing(tenant: Any, owner: Any, deployment: Any) -> None:
    assert saved(owner, deployment, preset="custom", axis_humor="180").status_code == 422
    with tenant_scope(tenant):
        assert state_of(deployment.pk) is None


def test_api_chooses_tunes_and_shows_what_models_are_told(tenant: Any, owner: Any, deployment: Any) -> None:
    client = browser(owner)
    address = reverse("api-persona-preset", args=[deployment.pk])
    assert client.post(address, {"preset": "chill"}, content_type="application/json").json()["axes"]["humor"] == 0.7
    tune = reverse("api-persona-tune", args=[deployment.pk])
    tuned = client.post(tune, {"delta": {"humor": -0.5}}, content_type="application/json").json()
    assert tuned["axes"]["humor"] == 0.2
    assert tuned["preset"] == "custom"
    read = client.get(reverse("api-persona", args=[deployment.pk])).json()
    assert "Do not joke" in read["directives"]


def test_api_refuses_an_unknown_axis(tenant: Any, owner: Any, deployment: Any) -> None:
    tune = reverse("api-persona-tune", args=[deployment.pk])
    answer = browser(owner).post(tune, {"delta": {"charm": 0.5}}, content_type="application/json")
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "invalid_persona"


def test_feedback_is_in_the_events(owner: Any, deployment: Any) -> None:
    client = browser(owner)
    feedback = reverse("api-persona-feedback", args=[deployment.pk])
    assert client.post(feedback, {"type": "too_wordy"}, content_type="application/json").status_code == 200
    (event,) = client.get(reverse("api-persona-events", args=[deployment.pk])).json()
    assert event["event_type"] == "too_wordy"
    assert event["delta_axes"] == {"verbosity": -0.05}


def test_personality_of_another_tenant_is_not_found(deployment: Any, other_tenant: Any) -> None:
    foreigner = browser(make_member(other_tenant, "owner"))
    assert foreigner.get(reverse("api-persona", args=[deployment.pk])).status_code == 404


def test_without_a_login_nothing_is_answered(deployment: Any) -> None:
    assert Client().get(reverse("api-persona", args=[deployment.pk])).status_code in (401, 403)


def compared(user: Any, place: Any, **fields: str) -> str:
    said = {"question": "What is my excess?", "preset": "off", "persona": "Short and kind.", **fields}
    answer = browser(user).post(reverse("console-studio-compare", args=[place.pk]), said)
    assert answer.status_code == 200
    return html.unescape(answer.content.decode())


def test_saved_and_edited_style_answer_one_question_side_by_side_and_nothing_is_saved(
    tenant: Any, owner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = make_deployment(
        tenant, persona="Plain.", model_names={"proxy": "openai-chat:gpt-4o-mini"}, environment_keys=True
    )
    told: list[str] = []

    def answer(request: dict[str, Any]) -> Reply:
        text = json.dumps(request["messages"])
        told.append(text)
        return direct("Good day to you." if "Write formally." in text else "Hiya!")

    with serving_in_thread(answer) as fake:
        monkeypatch.setenv("OPENAI_BASE_URL", fake.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-house")
        monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", True)
        page = compared(owner, place, preset="custom", axis_formality="95", persona="<b>Kind</b>.")
    assert page.index("Hiya!") < page.index("Good day to you.")
    assert "built-in model" not in page
    assert sorted("Plain." in each for each in told) == [False, True]
    with tenant_scope(tenant):
        assert state_of(place.pk) is None
        assert type(place).objects.get(pk=place.pk).persona == "Plain."
        calls = ToolCall.objects.filter(tool="style_preview", state="executed")
        assert calls.count() == 2
        assert all(call.charged > 0 for call in calls)


def test_comparison_says_that_the_built_in_model_has_a_style_of_its_own(
    owner: Any, deployment: Any, other_tenant: Any
) -> None:
    page = compared(owner, deployment, preset="work")
    assert "has a style of its own" in page
    assert "Write formally." in page
    foreign = make_member(other_tenant, "owner")
    address = reverse("console-studio-compare", args=[deployment.pk])
    assert browser(foreign).post(address, {"question": "Hello"}).status_code == 404
