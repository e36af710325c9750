"""The admin shows approvals and lets nobody write them, superusers included."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.approvals.models import ApproverKey
from apps.tenants.models import User
from kernel.tenancy import tenant_scope
from tests.factories.approvals import make_plan, make_token

MODELS = ["card", "decision", "approvaltoken", "tokenuse", "approverkey"]


@pytest.fixture
def admin(database: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser(f"root-{id(client)}@example.test", "a-long-password"))
    return client


@pytest.mark.parametrize("model", MODELS)
def test_admin_list_is_shown(admin: Client, tenant: Any, owner: Any, model: str) -> None:
    make_token(tenant, owner, make_plan())
    assert admin.get(reverse(f"admin:approvals_{model}_changelist")).status_code == 200


@pytest.mark.parametrize("model", MODELS)
def test_admin_add_is_forbidden(admin: Client, model: str) -> None:
    assert admin.post(reverse(f"admin:approvals_{model}_add"), {}).status_code == 403


@pytest.mark.parametrize("page", ["change", "delete"])
def test_admin_write_of_a_token_is_forbidden(admin: Client, tenant: Any, owner: Any, page: str) -> None:
    token = make_token(tenant, owner, make_plan())
    address = reverse(f"admin:approvals_approvaltoken_{page}", args=[token.pk])
    assert admin.post(address, {"max_executions": 9}).status_code == 403


def test_admin_page_of_a_key_hides_the_sealed_half(admin: Client, tenant: Any, owner: Any) -> None:
    key = make_token(tenant, owner, make_plan()).key_id
    with tenant_scope(tenant):
        row = ApproverKey.objects.get(key_id=key)
    page = admin.get(reverse("admin:approvals_approverkey_change", args=[row.pk]))
    assert "sealed" not in page.content.decode().lower()
