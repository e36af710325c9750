"""The admin shows approvals and lets nobody write them, superusers included."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.approvals.models import ApprovalPolicy, ApproverKey, Passkey
from apps.audit.models import AuditEntry
from apps.tenants.models import User
from kernel.tenancy import tenant_scope
from tests.approvals.test_passkeys import register
from tests.factories.approvals import make_plan, make_token
from tests.factories.console import browser
from tests.factories.passkeys import SoftPasskey

MODELS = ["card", "decision", "answer", "approvaltoken", "tokenuse", "tokenrevocation", "approverkey", "passkey"]


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


POLICY = {"scope": "", "risk": "irreversible", "who": "approvers", "people": 2, "passkey": "registered"}


def test_owner_saves_a_policy_that_is_written_down(tenant: Any, owner: Any, approver: Any) -> None:
    browser(owner).post(reverse("admin:approvals_approvalpolicy_add"), POLICY)
    with tenant_scope(tenant):
        saved = ApprovalPolicy.objects.get()
        entry = AuditEntry.objects.order_by("seq").last()
    assert saved.people == 2
    assert entry.event == "admin_changed"
    assert entry.subject == f"row:{saved.pk}"


def test_policy_that_nobody_could_meet_is_refused(tenant: Any, owner: Any) -> None:
    page = browser(owner).post(reverse("admin:approvals_approvalpolicy_add"), POLICY)
    with tenant_scope(tenant):
        assert b"Only 1 of your members" in page.content
        assert not ApprovalPolicy.objects.exists()


def test_policy_for_owners_counts_owners_only(tenant: Any, owner: Any, approver: Any) -> None:
    browser(owner).post(reverse("admin:approvals_approvalpolicy_add"), {**POLICY, "who": "owners"})
    with tenant_scope(tenant):
        assert not ApprovalPolicy.objects.exists()


def test_same_policy_twice_is_refused_in_words(tenant: Any, owner: Any, approver: Any) -> None:
    address, client = reverse("admin:approvals_approvalpolicy_add"), browser(owner)
    client.post(address, POLICY)
    assert b"already exists" in client.post(address, POLICY).content


def test_changed_policy_is_written_down_with_what_changed(tenant: Any, owner: Any, approver: Any) -> None:
    client = browser(owner)
    client.post(reverse("admin:approvals_approvalpolicy_add"), POLICY)
    with tenant_scope(tenant):
        row = ApprovalPolicy.objects.get()
    client.post(reverse("admin:approvals_approvalpolicy_change", args=[row.pk]), {**POLICY, "people": 1})
    with tenant_scope(tenant):
        entry = AuditEntry.objects.order_by("seq").last()
    assert json.loads(entry.data) == {
        "change": "changed",
        "fields": ["people"],
        "model": "approvals.approvalpolicy",
        "before": {"people": 2},
        "after": {"people": 1},
    }


def test_deleted_policy_is_written_down(tenant: Any, owner: Any) -> None:
    with tenant_scope(tenant):
        row = ApprovalPolicy.objects.create()
    browser(owner).post(reverse("admin:approvals_approvalpolicy_delete", args=[row.pk]), {"post": "yes"})
    with tenant_scope(tenant):
        entry, left = AuditEntry.objects.order_by("seq").last(), ApprovalPolicy.objects.exists()
    assert json.loads(entry.data)["change"] == "deleted"
    assert left is False


@pytest.mark.parametrize("people", ["0", "6", "-1", "many", ""])
def test_policy_with_an_odd_number_of_people_is_refused(tenant: Any, owner: Any, people: str) -> None:
    browser(owner).post(reverse("admin:approvals_approvalpolicy_add"), {**POLICY, "people": people})
    with tenant_scope(tenant):
        assert not ApprovalPolicy.objects.exists()


def test_policy_of_another_tenant_counts_its_own_members(
    admin: Client, tenant: Any, other_tenant: Any, owner: Any, approver: Any
) -> None:
    """Whoever runs the platform sees all members; those of the row's tenant count."""
    page = admin.post(reverse("admin:approvals_approvalpolicy_add"), {**POLICY, "tenant": other_tenant.pk})
    assert b"Only 0 of your members" in page.content


@pytest.mark.parametrize("name", ["approvalpolicy", "cardtiming"])
def test_every_field_says_what_it_means(owner: Any, name: str) -> None:
    form = browser(owner).get(reverse(f"admin:approvals_{name}_add")).context["adminform"].form
    assert [field.name for field in form if not field.help_text] == []


def test_policy_that_asks_for_passkeys_says_who_has_none(owner: Any) -> None:
    policy = {**POLICY, "people": 1, "passkey": "required"}
    page = browser(owner).post(reverse("admin:approvals_approvalpolicy_add"), policy, follow=True)
    assert "Only 0 of the members who may approve have a passkey" in page.content.decode()


def test_approver_cannot_edit_policies(tenant: Any, owner: Any, approver: Any) -> None:
    browser(approver).post(reverse("admin:approvals_approvalpolicy_add"), POLICY)
    with tenant_scope(tenant):
        assert not ApprovalPolicy.objects.exists()


def test_owner_takes_a_member_s_lost_passkey_out_of_use(tenant: Any, owner: Any, approver: Any) -> None:
    passkey = register(tenant, approver, SoftPasskey())
    browser(owner).post(reverse("admin:approvals_passkey_delete", args=[passkey.pk]), {"post": "yes"})
    with tenant_scope(tenant):
        assert Passkey.objects.get(pk=passkey.pk).removed_at is not None


def test_approver_cannot_take_a_passkey_out_of_use(tenant: Any, owner: Any, approver: Any) -> None:
    passkey = register(tenant, owner, SoftPasskey())
    browser(approver).post(reverse("admin:approvals_passkey_delete", args=[passkey.pk]), {"post": "yes"})
    with tenant_scope(tenant):
        assert Passkey.objects.get(pk=passkey.pk).removed_at is None
