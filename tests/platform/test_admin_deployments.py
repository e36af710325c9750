"""Validation of deployments in the admin, and of the provider keys that they may use."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from apps.tenants.models import Deployment
from kernel.tenancy import tenant_scope
from tests.factories.tenants import make_deployment
from tests.platform.administration import changed, deployment_fields, page_of


def _may_use_keys(deployment: Any) -> bool:
    with tenant_scope(deployment.tenant_id):
        return bool(Deployment.objects.get(pk=deployment.pk).environment_keys)


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("allowed_origins", "http://shop.test", "not an exact origin"),
        ("theme_accent", "red", "must be a colour"),
        ("languages", "klingon", "klingon"),
        ("model_names_proxy", "nobody:x", "not a known model"),
        ("opening_hours_mon", "18:00-08:00", "18:00-08:00"),
    ],
)
def test_deployment_that_makes_no_sense_is_refused(keeper: Client, field: str, value: str, reason: str) -> None:
    page = keeper.post(page_of(Deployment, "add"), {**deployment_fields(), field: value})
    assert page.status_code == 200 and reason in page.content.decode()


def test_second_row_of_the_same_name_is_refused_with_the_reason(keeper: Client, tenant: Any) -> None:
    taken = make_deployment(tenant)
    data = {**deployment_fields(), "slug": taken.slug}
    assert "already exists" in keeper.post(page_of(Deployment, "add"), data).content.decode()


def test_deployment_is_switched_off_not_deleted(root: Client, deployment: Any) -> None:
    assert root.post(page_of(Deployment, "delete", deployment.pk), {"post": "yes"}).status_code == 403


def test_superuser_and_no_owner_allows_a_deployment_the_installations_keys(
    root: Client, keeper: Client, deployment: Any
) -> None:
    assert "Changed all the same" in changed(keeper, deployment, environment_keys="on", title="Changed all the same")
    assert not _may_use_keys(deployment)
    changed(root, deployment, environment_keys="on")
    assert _may_use_keys(deployment)


def test_owner_is_told_that_a_model_has_no_key(keeper: Client, deployment: Any) -> None:
    page = changed(keeper, deployment, model_names_proxy="openai:gpt-5-mini")
    assert "There is no provider key for openai:gpt-5-mini" in page
    assert "no provider key" not in changed(keeper, deployment)


def test_settings_are_typed_without_json_and_shown_as_they_were(keeper: Client, deployment: Any) -> None:
    typed = {
        "allowed_origins": "www.example.com\nlocalhost:3000",
        "suggestions": "Where is my order?\n\nCan I return it?",
        "languages": "de\nen",
        "theme_accent": "#1f5f8b",
        "theme_mode": "dark",
        "opening_hours_mon": "08:00-18:00",
        "model_names_scorer": "builtin:grounded",
    }
    changed(keeper, deployment, **typed)
    with tenant_scope(deployment.tenant_id):
        row = Deployment.objects.get(pk=deployment.pk)
    assert row.allowed_origins == ["https://www.example.com", "http://localhost:3000"]
    assert row.suggestions == ["Where is my order?", "Can I return it?"]
    assert row.languages == ["de", "en"]
    assert row.theme == {"accent": "#1f5f8b", "mode": "dark"}
    assert row.opening_hours == {"mon": "08:00-18:00"}
    assert row.model_names["scorer"] == "builtin:grounded"
    page = keeper.get(page_of(Deployment, "change", deployment.pk)).content.decode()
    assert "Where is my order?\nCan I return it?</textarea>" in page
    assert 'name="theme_accent" value="#1f5f8b"' in page
    assert 'name="opening_hours_mon" value="08:00-18:00"' in page
    assert "&quot;" not in page.partition("<form")[2].partition("</form>")[0]
