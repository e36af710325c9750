"""The personality of a chatbot in the studio and over the API."""

from __future__ import annotations

from typing import Any

from django.test import Client
from django.urls import reverse

from apps.persona.queries import state_of
from kernel.tenancy import tenant_scope
from tests.console.test_studio_settings import saved
from tests.factories.console import browser
from tests.factories.tenants import make_member


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
