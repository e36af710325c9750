"""An owner changes only their own rows in the admin, only settable fields, and each change is audited."""

from __future__ import annotations

import json
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse

from apps.access.models import AccessLevel
from apps.approvals.models import ApprovalPolicy, CardTiming
from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.gates.models import Gate
from apps.guard.models import Budget
from apps.tenants.models import Deployment, Membership
from apps.visitors.models import FormQuestion, VisitorOffers
from apps.work.models import GoalFile, ReviewPolicy
from apps.work.services import adopt_goal
from kernel.tenancy import tenant_scope
from tests.factories.audit import changes
from tests.factories.identity import GOAL
from tests.factories.sessions import make_session, say
from tests.factories.tenants import make_deployment, make_member
from tests.platform.administration import TENANT_MODELS, browser_of, changed, deployment_fields, label, page_of
from tests.rivals import race

# A goal comes in as a file, through the service that installs goals.
EDITABLE = [AccessLevel, ApprovalPolicy, CardTiming, FormQuestion, GoalFile, ReviewPolicy, VisitorOffers]
READ_ONLY = ["audit", "approvals", "silas_sessions", "work", "skills"]
FACTS = [m for m in TENANT_MODELS if m._meta.app_label in READ_ONLY and m not in EDITABLE]


def test_facts_cannot_be_added_even_by_a_superuser(root: Client) -> None:
    statuses = {label(model): root.post(page_of(model, "add"), {}).status_code for model in FACTS}
    assert statuses == dict.fromkeys(statuses, 403)


def test_chronicle_and_audit_log_cannot_be_changed_or_deleted(root: Client, deployment: Any) -> None:
    session = make_session(deployment)
    say(session, "Hello")
    with tenant_scope(deployment.tenant_id):
        rows = [session.entries.get(), AuditEntry.objects.earliest("seq")]
    for row in rows:
        for name in ("change", "delete"):
            answer = root.post(page_of(type(row), name, row.pk), {"text": "Other", "actor": "x"})
            assert answer.status_code == 403


def test_owner_lists_and_opens_only_their_own_rows(keeper: Client, tenant: Any, other_tenant: Any) -> None:
    mine, theirs = make_deployment(tenant), make_deployment(other_tenant)
    page = keeper.get(page_of(Deployment, "changelist")).content.decode()
    assert mine.public_key in page
    assert theirs.public_key not in page
    assert keeper.get(page_of(Deployment, "change", theirs.pk)).status_code == 302


def test_of_rivals_who_add_the_same_row_is_told_that_it_exists(tenant: Any, owner: Any) -> None:
    typed = {"scope": "", "risk": "high", "who": "owners", "people": "1", "passkey": "registered"}
    browsers, address = [browser_of(owner) for _ in range(4)], page_of(ApprovalPolicy, "add")
    answers = race(*(partial(browser.post, address, typed) for browser in browsers))
    assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 302]
    refused = next(answer for answer in answers if answer.status_code == 200)
    assert "already exists" in refused.content.decode()
    assert [entry["change"] for entry in changes(tenant)] == ["added"]


def test_owner_cannot_point_at_a_foreign_row(keeper: Client, other_tenant: Any) -> None:
    data = {"deployment": make_deployment(other_tenant).pk, "period": "day", "limit_usd": "1"}
    page = keeper.post(page_of(Budget, "add"), data)
    assert page.status_code == 200 and "Select a valid choice" in page.content.decode()


def test_superuser_cannot_join_rows_of_two_tenants(root: Client, tenant: Any, other_tenant: Any) -> None:
    foreign = make_deployment(other_tenant)
    data = {"tenant": tenant.pk, "deployment": foreign.pk, "period": "day", "limit_usd": "1"}
    assert "belongs to another tenant" in root.post(page_of(Budget, "add"), data).content.decode()


@pytest.mark.parametrize("names_another", [False, True])
def test_owner_adds_a_budget_to_their_own_tenant_whichever_they_name(
    keeper: Client, tenant: Any, other_tenant: Any, names_another: bool
) -> None:
    named = {"tenant": other_tenant.pk} if names_another else {}
    keeper.post(page_of(Budget, "add"), {"period": "day", "limit_usd": "2", **named})
    with tenant_scope(tenant):
        assert Budget.objects.count() == 1


def test_superuser_adds_a_gate_for_a_tenant(root: Client) -> None:
    assert 'name="tenant"' in root.get(page_of(Gate, "add")).content.decode()


def test_owner_elsewhere_has_no_rights_here(keeper: Client, tenant: Any, other_tenant: Any) -> None:
    """The owner of one tenant is a viewer of another: the administration opens the one they own."""
    person = make_member(other_tenant, "owner")
    with tenant_scope(tenant):
        Membership.objects.create(user=person, role="viewer")
    mine, theirs = make_deployment(other_tenant), make_deployment(tenant)
    page = browser_of(person).get(page_of(Deployment, "changelist")).content.decode()
    assert mine.public_key in page and theirs.public_key not in page


def test_owner_of_two_tenants_administers_the_one_open_at_the_console(tenant: Any, other_tenant: Any) -> None:
    person = make_member(tenant, "owner")
    with tenant_scope(other_tenant):
        Membership.objects.create(user=person, role="owner")
    mine, theirs = make_deployment(other_tenant), make_deployment(tenant)
    browser = browser_of(person)
    browser.post(reverse("console-tenant"), {"tenant": other_tenant.slug})
    page = browser.get(page_of(Deployment, "changelist")).content.decode()
    assert mine.public_key in page and theirs.public_key not in page


def test_change_is_written_down_in_the_tenants_chain(root: Client, tenant: Any) -> None:
    root.post(page_of(Deployment, "add"), {**deployment_fields(), "tenant": tenant.pk})
    with tenant_scope(tenant):
        (entry,) = AuditEntry.objects.filter(event=AuditEvent.ADMIN_CHANGED)
    said = json.loads(entry.data)
    assert said["model"] == "tenants.deployment"
    assert said["change"] == "added"
    assert "before" not in said


def test_change_names_the_fields_that_were_changed(root: Client, deployment: Any) -> None:
    changed(root, deployment, environment_keys="on")
    with tenant_scope(deployment.tenant_id):
        entry = AuditEntry.objects.filter(event=AuditEvent.ADMIN_CHANGED).latest("seq")
    assert "environment_keys" in json.loads(entry.data)["fields"]


def test_time_to_decide_is_typed_with_its_unit(keeper: Client, tenant: Any) -> None:
    typed = {"pace": "plan", "seconds_0": "36", "seconds_1": "3600"}
    assert keeper.post(page_of(CardTiming, "add"), typed).status_code == 302
    with tenant_scope(tenant):
        timing = CardTiming.objects.get()
    assert timing.seconds == 129_600
    page = keeper.get(page_of(CardTiming, "change", timing.pk)).content.decode()
    assert 'name="seconds_0" value="36"' in page
    assert 'for="id_seconds_0"' in page
    assert '<option value="3600" selected>hours</option>' in page
    for number, unit in (("9", "1"), ("31", "86400"), ("", "60"), ("1", "7")):
        wrong = {"pace": "plan", "seconds_0": number, "seconds_1": unit}
        assert keeper.post(page_of(CardTiming, "change", timing.pk), wrong).status_code == 200
    with tenant_scope(tenant):
        assert CardTiming.objects.get().seconds == 129_600


def test_goal_is_chosen_from_the_chatbots_own(keeper: Client, tenant: Any) -> None:
    place, other = make_deployment(tenant), make_deployment(tenant)
    bare = GOAL[: GOAL.index("skills:")] + GOAL[GOAL.index("access_levels:") :] if "skills:" in GOAL else GOAL
    with tenant_scope(tenant):
        goal, foreign = (adopt_goal(bare, deployment_id=row.pk, requested_by="user:test") for row in (place, other))
    page = keeper.get(page_of(Deployment, "change", place.pk)).content.decode()
    assert f'<option value="{goal.pk}">{goal.title}</option>' in page
    assert str(foreign.pk) not in page
    changed(keeper, place, active_goal_id=str(foreign.pk))
    assert _goal_of(place) is None
    changed(keeper, place, active_goal_id=str(goal.pk))
    assert _goal_of(place) == goal.pk
    page = keeper.get(page_of(Deployment, "change", place.pk)).content.decode()
    assert f'<option value="{goal.pk}" selected>' in page


def _goal_of(place: Any) -> Any:
    with tenant_scope(place.tenant_id):
        return Deployment.objects.get(pk=place.pk).active_goal_id


def test_limit_of_a_visitor_is_changed_and_never_made_by_hand(keeper: Client, tenant: Any) -> None:
    visitor = uuid4()
    keeper.post(page_of(Budget, "add"), {"period": "day", "limit_usd": "2", "visitor_ref": str(visitor)})
    with tenant_scope(tenant):
        budget = Budget.objects.get()
    assert budget.visitor_ref is None
    keeper.post(page_of(Budget, "change", budget.pk), {"period": "day", "limit_usd": "3", "task_ref": str(visitor)})
    with tenant_scope(tenant):
        budget.refresh_from_db()
    assert budget.task_ref is None
    assert budget.limit_usd == 3
