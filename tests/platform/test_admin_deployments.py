"""Validation of deployments in the admin, and of the provider keys that they may use."""

from __future__ import annotations

import json
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
        ("allowed_origins", '["http://shop.test"]', "not an exact origin"),
        ("theme", '{"accent": "red"}', "must be a colour"),
        ("suggestions", '"x"', "Give a list"),
        ("model_names", '{"proxy": "nobody:x", "planner": "builtin:grounded", "executor": "x"}', "not a known model"),
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
    names = {"proxy": "openai:gpt-5-mini", "planner": "builtin:grounded", "executor": "builtin:grounded"}
    page = changed(keeper, deployment, model_names=json.dumps(names))
    assert "There is no provider key for openai:gpt-5-mini" in page
    assert "no provider key" not in changed(keeper, deployment)


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        *((wrong, {}) for wrong in ('{"monday": "8-18"}', "always", '{"mon": "18:00-08:00"}', "")),
        ('{"mon": "08:00-18:00"}', {"mon": "08:00-18:00"}),
    ],
)
def test_owner_says_when_people_answer_and_hours_that_nobody_can_keep_are_refused(
    keeper: Client, deployment: Any, typed: str, kept: dict[str, str]
) -> None:
    changed(keeper, deployment, opening_hours=typed)
    with tenant_scope(deployment.tenant_id):
        assert Deployment.objects.get(pk=deployment.pk).opening_hours == kept
