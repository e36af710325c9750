"""Access levels and approval policies in Settings: owners add, change and remove them, checked as in the
administration."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from django.urls import reverse

from apps.access.models import AccessLevel
from apps.approvals.models import ApprovalPolicy
from apps.tenants import policy_seals
from apps.tenants.enums import PolicyKind
from kernel.tenancy import tenant_scope
from tests.factories.audit import changes
from tests.factories.console import browser
from tests.factories.signed import make_site
from tests.factories.tenants import make_deployment, make_member
from tests.rivals import race

POLICY = {"scope": "", "risk": "high", "who": "owners", "people": "1", "passkey": "registered"}
LEVEL = {"name": "public", "order": "0", "description": ""}
KINDS = ["access-level", "approval-policy"]


def row_of(model: Any, tenant: Any) -> Any:
    with tenant_scope(tenant):
        return model.objects.get()


def make_row(kind: str, tenant: Any) -> Any:
    with tenant_scope(tenant):
        if kind == "approval-policy":
            return ApprovalPolicy.objects.create(risk="high")
        return AccessLevel.objects.create(deployment=make_deployment(tenant), name="public")


def test_owner_adds_changes_and_removes_an_approval_policy(tenant: Any, owner: Any) -> None:
    desk = browser(owner)
    made = desk.post(reverse("console-approval-policy-new"), POLICY)
    row = row_of(ApprovalPolicy, tenant)
    assert made["Location"] == reverse("console-approval-policy", args=[row.pk])
    assert "Every request, High" in desk.get(reverse("console-approval-policies")).content.decode()
    saved = desk.post(made["Location"], {**POLICY, "own_requests": "on"})
    assert saved.status_code == 302
    assert row_of(ApprovalPolicy, tenant).own_requests
    with tenant_scope(tenant):
        assert policy_seals.load_items(PolicyKind.APPROVALS)
    assert desk.post(reverse("console-approval-policy-delete", args=[row.pk])).status_code == 302
    with tenant_scope(tenant):
        assert not ApprovalPolicy.objects.exists()
        assert not policy_seals.load_items(PolicyKind.APPROVALS)
    recorded = changes(tenant)
    assert [entry["change"] for entry in recorded] == ["added", "changed", "deleted"]
    assert recorded[0]["after"]["who"] == "owners"
    assert recorded[1]["fields"] == ["own_requests"]
    assert recorded[1]["before"] == {"own_requests": False}
    assert recorded[1]["after"] == {"own_requests": True}


def test_owner_adds_changes_and_removes_an_access_level(tenant: Any, owner: Any) -> None:
    desk, chatbot = browser(owner), make_deployment(tenant)
    typed = {**LEVEL, "deployment": str(chatbot.pk), "tools": "knowledge_search"}
    made = desk.post(reverse("console-access-level-new"), typed)
    row = row_of(AccessLevel, tenant)
    assert made["Location"] == reverse("console-access-level", args=[row.pk])
    assert row.tools == ["knowledge_search"]
    assert chatbot.title in desk.get(reverse("console-access-levels")).content.decode()
    desk.post(made["Location"], {**typed, "description": "What everyone reaches"})
    assert row_of(AccessLevel, tenant).description == "What everyone reaches"
    desk.post(reverse("console-access-level-delete", args=[row.pk]))
    with tenant_scope(tenant):
        assert not AccessLevel.objects.exists()
    assert [entry["change"] for entry in changes(tenant)] == ["added", "changed", "deleted"]


def test_level_is_made_of_the_tools_and_gates_that_the_chatbot_has(tenant: Any, owner: Any) -> None:
    desk, chatbot = browser(owner), make_deployment(tenant)
    make_site(chatbot, gate="signed_in")
    offered = desk.get(reverse("console-access-level-new")).content.decode()
    assert 'name="tools" value="knowledge_search"' in offered
    assert 'name="requires" value="signed_in"' in offered
    typed = {**LEVEL, "name": "customer", "order": "1", "deployment": str(chatbot.pk)}
    typed |= {"tools": "knowledge_search", "requires": "signed_in", "expires_after_0": "2", "expires_after_1": "3600"}
    made = desk.post(reverse("console-access-level-new"), typed)
    row = row_of(AccessLevel, tenant)
    assert row.requires == ["signed_in"]
    assert row.expires_after == 7200
    desk.post(made["Location"], typed)
    assert len(changes(tenant)) == 1


def test_tool_that_the_chatbot_lost_is_shown_until_it_is_taken_out(tenant: Any, owner: Any) -> None:
    desk, row = browser(owner), make_row("access-level", tenant)
    with tenant_scope(tenant):
        AccessLevel.objects.update(tools=["sold_out"])
    address = reverse("console-access-level", args=[row.pk])
    assert 'value="sold_out"' in desk.get(address).content.decode()
    typed = {**LEVEL, "deployment": str(row.deployment_id)}
    assert desk.post(address, {**typed, "tools": "sold_out"}).status_code == 422
    assert desk.post(address, typed).status_code == 302
    assert row_of(AccessLevel, tenant).tools == []


def test_foreign_companies_tools_and_gates_are_not_offered(owner: Any, tenant: Any, other_tenant: Any) -> None:
    make_deployment(tenant)
    make_site(make_deployment(other_tenant), gate="theirs")
    assert "theirs" not in browser(owner).get(reverse("console-access-level-new")).content.decode()


def test_nothing_is_recorded_where_nothing_changes(tenant: Any, owner: Any) -> None:
    desk = browser(owner)
    made = desk.post(reverse("console-approval-policy-new"), POLICY)
    desk.post(made["Location"], POLICY)
    assert len(changes(tenant)) == 1


def test_changes_of_rivals_are_recorded_from_what_the_one_before_left(tenant: Any, owner: Any) -> None:
    desks = [browser(owner) for _ in range(4)]
    address = desks[0].post(reverse("console-approval-policy-new"), POLICY)["Location"]
    typed = [{"own_requests": "on"}, {"passkey": "required"}, {"who": "approvers"}, {"risk": "medium"}]
    answers = race(
        *(partial(desk.post, address, {**POLICY, **change}) for desk, change in zip(desks, typed, strict=True))
    )
    assert [answer.status_code for answer in answers] == [302] * 4
    recorded = changes(tenant)
    left = dict(recorded[0]["after"])
    for entry in recorded[1:]:
        assert entry["before"] == {name: left[name] for name in entry["fields"]}
        left |= entry["after"]
    row = row_of(ApprovalPolicy, tenant)
    assert left == {name: getattr(row, name) for name in left}


@pytest.mark.parametrize("kind", KINDS)
def test_row_that_rivals_delete_is_deleted_and_recorded_once(tenant: Any, owner: Any, kind: str) -> None:
    row, desks = make_row(kind, tenant), [browser(owner) for _ in range(3)]
    address = reverse(f"console-{kind}-delete", args=[row.pk])
    answers = race(*(partial(desk.post, address) for desk in desks))
    assert sorted(answer.status_code for answer in answers) == [302, 404, 404]
    assert [entry["change"] for entry in changes(tenant)] == ["deleted"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"scope": "everything"},
        {"risk": "none"},
        {"who": "visitors"},
        {"who": ""},
        {"people": "0"},
        {"people": "6"},
        {"people": "2"},
        {"people": "many"},
        {"passkey": "never"},
    ],
)
def test_wrong_approval_policy_is_refused(tenant: Any, owner: Any, wrong: dict[str, str]) -> None:
    refused = browser(owner).post(reverse("console-approval-policy-new"), {**POLICY, **wrong})
    assert refused.status_code == 422
    assert b"Nothing was saved" in refused.content
    assert changes(tenant) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"deployment": str(uuid4())},
        {"deployment": "x"},
        {"name": "two words"},
        {"name": "verified"},
        {"name": "verified", "requires": "no_such_gate"},
        {"tools": "no_such_tool"},
        {"requires": "identity_verified"},
        {"expires_after_0": "60", "expires_after_1": "1"},
        {"order": "-1"},
    ],
)
def test_wrong_access_level_is_refused(tenant: Any, owner: Any, wrong: dict[str, str]) -> None:
    typed = {**LEVEL, "deployment": str(make_deployment(tenant).pk)}
    refused = browser(owner).post(reverse("console-access-level-new"), {**typed, **wrong})
    assert refused.status_code == 422
    assert changes(tenant) == []


def test_same_policy_twice_is_refused(tenant: Any, owner: Any) -> None:
    desk = browser(owner)
    assert desk.post(reverse("console-approval-policy-new"), POLICY).status_code == 302
    assert desk.post(reverse("console-approval-policy-new"), POLICY).status_code == 422


@pytest.mark.parametrize("kind", KINDS)
def test_of_rivals_who_add_the_same_one_is_told_that_it_exists(tenant: Any, owner: Any, kind: str) -> None:
    typed = POLICY if kind == "approval-policy" else {**LEVEL, "deployment": str(make_deployment(tenant).pk)}
    desks, address = [browser(owner) for _ in range(4)], reverse(f"console-{kind}-new")
    answers = race(*(partial(desk.post, address, typed) for desk in desks))
    assert sorted(answer.status_code for answer in answers) == [302, 422, 422, 422]
    refused = next(answer for answer in answers if answer.status_code == 422)
    assert "already exists" in refused.content.decode()
    assert [entry["change"] for entry in changes(tenant)] == ["added"]


def test_level_of_a_foreign_chatbot_is_refused(owner: Any, tenant: Any, other_tenant: Any) -> None:
    typed = {**LEVEL, "deployment": str(make_deployment(other_tenant).pk)}
    assert browser(owner).post(reverse("console-access-level-new"), typed).status_code == 422
    assert changes(other_tenant) == []


@pytest.mark.parametrize("kind", KINDS)
def test_foreign_and_unknown_row_is_not_found(owner: Any, other_tenant: Any, kind: str) -> None:
    foreign, desk = make_row(kind, other_tenant), browser(owner)
    for pk in (foreign.pk, uuid4()):
        assert desk.get(reverse(f"console-{kind}", args=[pk])).status_code == 404
        assert desk.post(reverse(f"console-{kind}", args=[pk]), POLICY).status_code == 404
        assert desk.post(reverse(f"console-{kind}-delete", args=[pk])).status_code == 404
    assert row_of(type(foreign), other_tenant) == foreign


@pytest.mark.parametrize("role", ["approver", "agent", "viewer"])
@pytest.mark.parametrize("kind", KINDS)
def test_only_owners_open_and_change_them(tenant: Any, kind: str, role: str) -> None:
    row, desk = make_row(kind, tenant), browser(make_member(tenant, role))
    assert desk.get(reverse(f"console-{kind}", args=[row.pk])).status_code == 403
    assert desk.post(reverse(f"console-{kind}", args=[row.pk]), {}).status_code == 403
    assert desk.post(reverse(f"console-{kind}-delete", args=[row.pk])).status_code == 403
    assert row_of(type(row), tenant) == row


@pytest.mark.parametrize("kind", KINDS)
def test_console_and_administration_lead_to_each_other(tenant: Any, owner: Any, kind: str) -> None:
    row, desk = make_row(kind, tenant), browser(owner)
    meta = type(row)._meta
    name = f"admin:{meta.app_label}_{meta.model_name}"
    lists = {"access-level": "console-access-levels", "approval-policy": "console-approval-policies"}
    assert reverse(f"{name}_changelist") in desk.get(reverse(lists[kind])).content.decode()
    assert (
        reverse(f"console-{kind}", args=[row.pk]) in desk.get(reverse(f"{name}_change", args=[row.pk])).content.decode()
    )


def test_policy_that_nobody_can_satisfy_is_warned_about(tenant: Any, owner: Any) -> None:
    desk = browser(owner)
    made = desk.post(reverse("console-approval-policy-new"), {**POLICY, "passkey": "required"})
    assert "have a passkey" in desk.get(made["Location"]).content.decode()
