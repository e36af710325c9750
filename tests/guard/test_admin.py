"""Administrators edit budgets and pauses, and read runs and calls."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse

from apps.guard.models import Budget, ModelPrice, PlatformBudget
from apps.tenants.models import User
from kernel.tenancy import platform_scope, tenant_scope


@pytest.fixture
def admin(database: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser(f"root-{uuid4()}@example.test", "a-long-password"))
    return client


@pytest.mark.parametrize("model", ["guardedrun", "toolcall"])
def test_admin_add_of_a_run_or_call_is_forbidden(admin: Client, model: str) -> None:
    assert admin.post(reverse(f"admin:guard_{model}_add"), {}).status_code == 403


BUDGET = {"period": "day", "limit_usd": "2.5"}
PRICE = {"model": "openai:mine", "input_per_million": "0.5", "output_per_million": "1.5"}


@pytest.mark.parametrize(
    ("model", "data", "field"), [(Budget, BUDGET, "limit_usd"), (ModelPrice, PRICE, "input_per_million")]
)
def test_admin_adds_a_row_for_the_tenant_named(admin: Client, tenant: Any, model: Any, data: Any, field: str) -> None:
    admin.post(reverse(f"admin:guard_{model._meta.model_name}_add"), {"tenant": tenant.pk, **data})
    with tenant_scope(tenant):
        assert getattr(model.objects.get(), field) == Decimal(data[field])


@pytest.mark.parametrize(
    ("model", "wrong"),
    [
        ("budget", {**BUDGET, "limit_usd": "-1"}),
        *(("modelprice", {**PRICE, "model": model}) for model in ("builtin:grounded", "gpt")),
        ("modelprice", {**PRICE, "input_per_million": "-1"}),
        ("spendingpolicy", {"on_limit": "pause_all", "default_input": "1"}),
    ],
)
def test_admin_refuses_a_row_that_cannot_be(admin: Client, tenant: Any, model: str, wrong: dict[str, str]) -> None:
    assert admin.post(reverse(f"admin:guard_{model}_add"), {"tenant": tenant.pk, **wrong}).status_code == 200


def test_operator_sets_the_installations_budget(admin: Client) -> None:
    try:
        admin.post(reverse("admin:guard_platformbudget_add"), {"period": "month", "limit_usd": "1000000"})
        with platform_scope("test"):
            assert str(PlatformBudget.objects.get().limit_usd) == "1000000.000000000"
    finally:
        with platform_scope("test"):
            PlatformBudget.objects.all().delete()
