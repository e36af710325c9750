"""Administrators edit budgets and pauses, and read runs and calls."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.guard.models import Budget
from apps.tenants.models import User
from kernel.tenancy import tenant_scope
from tests.factories.guard import make_budget, make_run

MODELS = ["budget", "systemcontrol", "guardedrun", "toolcall"]


@pytest.fixture
def admin(database: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser(f"root-{id(client)}@example.test", "a-long-password"))
    return client


@pytest.mark.parametrize("model", MODELS)
def test_admin_list_is_shown(admin: Client, tenant: Any, model: str) -> None:
    make_run(tenant)
    make_budget(tenant, "1")
    assert admin.get(reverse(f"admin:guard_{model}_changelist")).status_code == 200


@pytest.mark.parametrize("model", ["guardedrun", "toolcall"])
def test_admin_add_of_a_run_or_call_is_forbidden(admin: Client, model: str) -> None:
    assert admin.post(reverse(f"admin:guard_{model}_add"), {}).status_code == 403


def test_admin_adds_a_budget_for_the_tenant_named(admin: Client, tenant: Any) -> None:
    admin.post(reverse("admin:guard_budget_add"), {"tenant": tenant.pk, "period": "day", "limit_usd": "2.5"})
    with tenant_scope(tenant):
        assert [str(row.limit_usd) for row in Budget.objects.all()] == ["2.500000000"]


def test_admin_refuses_a_negative_limit(admin: Client, tenant: Any) -> None:
    data = {"tenant": tenant.pk, "period": "day", "limit_usd": "-1"}
    assert admin.post(reverse("admin:guard_budget_add"), data).status_code == 200
