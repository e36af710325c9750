"""Does the administration show a superuser the platform, an owner their own tenant, and everybody else nothing?"""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.gates.models import Gate
from apps.guard.models import Budget
from apps.tenants.models import ApiKey, Deployment, Membership, User
from apps.tenants.queries import api_key
from kernel.tenancy import tenant_scope
from kernel.tenancy.models import TenantManager
from tests.factories.approvals import make_plan, make_token
from tests.factories.sessions import make_session, say
from tests.factories.tenants import make_deployment, make_member

# Registered by `silas_platform`'s own site when Django starts.
MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)
TENANT_MODELS = [model for model in MODELS if isinstance(model._default_manager, TenantManager)]
PLATFORM_MODELS = [model for model in MODELS if model not in TENANT_MODELS]
READ_ONLY = ["audit", "approvals", "silas_sessions", "work", "skills"]


def _browser(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def root(database: None) -> Client:
    return _browser(User.objects.create_superuser(f"root-{uuid4().hex}@example.test", "a-long-password"))


@pytest.fixture
def keeper(owner: Any) -> Client:
    """The tenant's owner at the administration."""
    return _browser(owner)


def _page(model: Any, name: str, *args: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{name}", args=args)


def _label(model: Any) -> str:
    return str(model._meta.label)


def test_superuser_sees_the_index(root: Client) -> None:
    assert root.get(reverse("admin:index")).status_code == 200


def test_owner_sees_the_index_with_their_rooms(keeper: Client) -> None:
    page = keeper.get(reverse("admin:index")).content.decode()
    assert "Gates" in page and "Budgets" in page and "Deployments" in page


@pytest.mark.parametrize("model", MODELS, ids=_label)
def test_superuser_sees_every_list(root: Client, model: Any) -> None:
    assert root.get(_page(model, "changelist")).status_code == 200


@pytest.mark.parametrize("model", TENANT_MODELS, ids=_label)
def test_owner_sees_every_list_of_their_tenant(keeper: Client, model: Any) -> None:
    assert keeper.get(_page(model, "changelist")).status_code == 200


@pytest.mark.parametrize("model", PLATFORM_MODELS, ids=_label)
def test_owner_sees_no_list_of_the_platform(keeper: Client, model: Any) -> None:
    assert keeper.get(_page(model, "changelist")).status_code == 403


@pytest.mark.parametrize("who", ["approver", "agent", "viewer", "stranger"])
def test_others_are_refused(who: str, request: Any) -> None:
    assert _browser(request.getfixturevalue(who)).get(reverse("admin:index")).status_code == 403


def test_what_can_be_set_comes_first(keeper: Client) -> None:
    page = keeper.get(reverse("admin:index")).content.decode()
    assert page.index("Deployments") < page.index("Gates") < page.index("Approval tokens")


def test_administration_without_login_leads_to_the_consoles_login(database: None) -> None:
    first = Client().get(reverse("admin:index"), follow=True)
    assert first.redirect_chain[-1][0] == f"{reverse('console-login')}?next={reverse('admin:index')}"


@pytest.mark.parametrize("page", ["add"])
@pytest.mark.parametrize("model", [m for m in TENANT_MODELS if m._meta.app_label in READ_ONLY], ids=_label)
def test_facts_cannot_be_added_even_by_a_superuser(root: Client, model: Any, page: str) -> None:
    assert root.post(_page(model, page), {}).status_code == 403


def test_chronicle_cannot_be_changed_or_deleted(root: Client, deployment: Any) -> None:
    session = make_session(deployment)
    say(session, "Hello")
    with tenant_scope(deployment.tenant_id):
        entry = session.entries.get()
    answers = [root.post(_page(type(entry), name, entry.pk), {"text": "Other"}) for name in ("change", "delete")]
    assert [answer.status_code for answer in answers] == [403, 403]


def test_audit_entry_cannot_be_changed_or_deleted(root: Client, tenant: Any, owner: Any) -> None:
    make_token(tenant, owner, make_plan())
    with tenant_scope(tenant):
        entry = AuditEntry.objects.earliest("seq")
    answers = [root.post(_page(AuditEntry, name, entry.pk), {"actor": "x"}) for name in ("change", "delete")]
    assert [answer.status_code for answer in answers] == [403, 403]


def test_owner_lists_only_their_own_rows(keeper: Client, tenant: Any, other_tenant: Any) -> None:
    mine, theirs = make_deployment(tenant), make_deployment(other_tenant)
    page = keeper.get(_page(Deployment, "changelist")).content.decode()
    assert mine.public_key in page and theirs.public_key not in page


def test_owner_cannot_open_a_foreign_row(keeper: Client, other_tenant: Any) -> None:
    theirs = make_deployment(other_tenant)
    assert keeper.get(_page(Deployment, "change", theirs.pk)).status_code == 302


def test_owner_cannot_point_at_a_foreign_row(keeper: Client, other_tenant: Any) -> None:
    data = {"deployment": make_deployment(other_tenant).pk, "period": "day", "limit_usd": "1"}
    page = keeper.post(_page(Budget, "add"), data)
    assert page.status_code == 200 and "Select a valid choice" in page.content.decode()


def test_superuser_cannot_join_rows_of_two_tenants(root: Client, tenant: Any, other_tenant: Any) -> None:
    foreign = make_deployment(other_tenant)
    data = {"tenant": tenant.pk, "deployment": foreign.pk, "period": "day", "limit_usd": "1"}
    assert "belongs to another tenant" in root.post(_page(Budget, "add"), data).content.decode()


def test_owner_adds_a_budget_to_their_tenant(keeper: Client, tenant: Any) -> None:
    keeper.post(_page(Budget, "add"), {"period": "day", "limit_usd": "2"})
    with tenant_scope(tenant):
        assert Budget.objects.count() == 1


def test_owner_who_names_another_tenant_writes_to_their_own(keeper: Client, tenant: Any, other_tenant: Any) -> None:
    keeper.post(_page(Budget, "add"), {"tenant": other_tenant.pk, "period": "day", "limit_usd": "2"})
    with tenant_scope(tenant):
        assert Budget.objects.count() == 1


def test_second_row_of_the_same_name_is_refused_with_the_reason(keeper: Client, tenant: Any) -> None:
    taken = make_deployment(tenant)
    data = {**_deployment_fields(), "slug": taken.slug}
    assert "already exists" in keeper.post(_page(Deployment, "add"), data).content.decode()


def test_change_is_written_down_in_the_tenants_chain(root: Client, tenant: Any) -> None:
    root.post(_page(Deployment, "add"), {**_deployment_fields(), "tenant": tenant.pk})
    with tenant_scope(tenant):
        (entry,) = AuditEntry.objects.filter(event=AuditEvent.ADMIN_CHANGED)
    assert entry.data == '{"change":"added","model":"tenants.deployment"}'


def _deployment_fields() -> dict[str, Any]:
    key = f"k-{uuid4().hex[:12]}"
    names = '{"proxy":"builtin:grounded","planner":"builtin:grounded","executor":"builtin:grounded"}'
    return {
        "title": "Desk",
        "slug": key,
        "public_key": key,
        "enabled": "on",
        "allowed_origins": "[]",
        "theme": "{}",
        "suggestions": "[]",
        "model_names": names,
    }


def test_superuser_adds_a_gate_for_a_tenant(root: Client) -> None:
    assert 'name="tenant"' in root.get(_page(Gate, "add")).content.decode()


def test_new_member_gets_a_link_that_works_once(keeper: Client, tenant: Any) -> None:
    email = f"new-{uuid4().hex}@example.test"
    page = keeper.post(_page(Membership, "add"), {"email": email, "role": "agent"}, follow=True).content.decode()
    found = re.search(r"http://testserver(/console/welcome/[\w/-]+/)", page)
    assert found
    guest = Client()
    assert guest.post(found[1], {"password": "a-quite-long-password"})["Location"] == reverse("console")
    assert Client().get(found[1]).status_code == 404


def test_member_with_an_account_gets_no_link(keeper: Client, stranger: Any) -> None:
    """A link would let one tenant's owner take over somebody else's account."""
    page = keeper.post(_page(Membership, "add"), {"email": stranger.email, "role": "agent"}, follow=True)
    assert "/console/welcome/" not in page.content.decode()


def test_account_that_another_tenant_s_owner_may_have_made_is_not_let_in(
    keeper: Client, tenant: Any, other_tenant: Any
) -> None:
    """An owner registers the address of a person who will join somebody else, sets a password, and waits."""
    email = f"boss-{uuid4().hex}@example.test"
    elsewhere = _browser(make_member(other_tenant, "owner"))
    elsewhere.post(_page(Membership, "add"), {"email": email, "role": "viewer"})
    page = keeper.post(_page(Membership, "add"), {"email": email.upper(), "role": "owner"}, follow=True)
    with tenant_scope(tenant):
        assert not Membership.objects.filter(user__email=email).exists()
    assert "has an account already" in page.content.decode()


def test_superuser_lets_an_account_in(root: Client, tenant: Any, stranger: Any) -> None:
    root.post(_page(Membership, "add"), {"email": stranger.email, "role": "agent", "tenant": str(tenant.pk)})
    with tenant_scope(tenant):
        assert Membership.objects.filter(user=stranger).exists()


def test_member_cannot_be_added_twice(keeper: Client, agent: Any) -> None:
    page = keeper.post(_page(Membership, "add"), {"email": agent.email.upper(), "role": "owner"})
    assert "a member already" in page.content.decode()


@pytest.mark.parametrize("link", ["/console/welcome/x/y/", f"/console/welcome/{'A' * 30}/c-0/"])
def test_broken_welcome_link_says_so(database: None, link: str) -> None:
    page = Client().get(link)
    assert page.status_code == 404 and "does not work any more" in page.content.decode()


def test_welcome_with_a_weak_password_is_refused(keeper: Client, tenant: Any) -> None:
    email = f"new-{uuid4().hex}@example.test"
    page = keeper.post(_page(Membership, "add"), {"email": email, "role": "agent"}, follow=True).content.decode()
    found = re.search(r"http://testserver(/console/welcome/[\w/-]+/)", page)
    assert found
    assert Client().post(found[1], {"password": "password"}).status_code == 400


def test_owner_elsewhere_has_no_rights_here(keeper: Client, tenant: Any, other_tenant: Any) -> None:
    """The owner of one tenant is a viewer of another: the administration opens the one they own."""
    person = make_member(other_tenant, "owner")
    with tenant_scope(tenant):
        Membership.objects.create(user=person, role="viewer")
    mine, theirs = make_deployment(other_tenant), make_deployment(tenant)
    page = _browser(person).get(_page(Deployment, "changelist")).content.decode()
    assert mine.public_key in page and theirs.public_key not in page


def test_owner_of_two_tenants_administers_the_one_open_at_the_console(tenant: Any, other_tenant: Any) -> None:
    person = make_member(tenant, "owner")
    with tenant_scope(other_tenant):
        Membership.objects.create(user=person, role="owner")
    mine, theirs = make_deployment(other_tenant), make_deployment(tenant)
    browser = _browser(person)
    browser.post(reverse("console-tenant"), {"tenant": other_tenant.slug})
    page = browser.get(_page(Deployment, "changelist")).content.decode()
    assert mine.public_key in page and theirs.public_key not in page


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
    page = keeper.post(_page(Deployment, "add"), {**_deployment_fields(), field: value})
    assert page.status_code == 200 and reason in page.content.decode()


def test_deployment_is_switched_off_not_deleted(root: Client, deployment: Any) -> None:
    assert root.post(_page(Deployment, "delete", deployment.pk), {"post": "yes"}).status_code == 403


def _key_in(page: str) -> str:
    found = re.search(r"sk_[A-Za-z0-9_-]{43}", page)
    return found[0] if found else ""


@pytest.fixture
def new_key(keeper: Client) -> str:
    return _key_in(keeper.post(_page(ApiKey, "add"), {"name": "Website"}).content.decode())


def test_new_api_key_is_shown_and_opens_its_tenant(new_key: str, tenant: Any) -> None:
    found = api_key(new_key)
    assert found is not None and found.tenant == tenant


def test_api_key_is_never_shown_again(new_key: str, keeper: Client, tenant: Any) -> None:
    with tenant_scope(tenant):
        row = ApiKey.objects.get()
    pages = [keeper.get(_page(ApiKey, "changelist")), keeper.get(_page(ApiKey, "change", row.pk))]
    pages.append(keeper.get(_page(ApiKey, "history", row.pk)))
    assert [new_key in page.content.decode() or row.hashed in page.content.decode() for page in pages] == [False] * 3


def test_answer_with_an_api_key_is_never_kept(keeper: Client) -> None:
    answer = keeper.post(_page(ApiKey, "add"), {"name": "Website"})
    assert "no-store" in answer["Cache-Control"] and not _key_in(str(answer.cookies))


def test_api_key_made_by_a_superuser_belongs_to_the_chosen_tenant(root: Client, other_tenant: Any) -> None:
    page = root.post(_page(ApiKey, "add"), {"name": "Website", "tenant": other_tenant.pk})
    found = api_key(_key_in(page.content.decode()))
    assert found is not None and found.tenant == other_tenant


def test_api_key_cannot_be_changed(new_key: str, keeper: Client, tenant: Any) -> None:
    with tenant_scope(tenant):
        row = ApiKey.objects.get()
    assert keeper.post(_page(ApiKey, "change", row.pk), {"name": "Other"}).status_code == 403


def test_chosen_api_key_is_revoked(new_key: str, keeper: Client, tenant: Any) -> None:
    with tenant_scope(tenant):
        row = ApiKey.objects.get()
    keeper.post(_page(ApiKey, "changelist"), {"action": "revoke", "_selected_action": [str(row.pk)]})
    assert api_key(new_key) is None


def test_foreign_api_key_cannot_be_revoked(new_key: str, tenant: Any, other_tenant: Any) -> None:
    with tenant_scope(tenant):
        row = ApiKey.objects.get()
    stranger = _browser(make_member(other_tenant, "owner"))
    stranger.post(_page(ApiKey, "changelist"), {"action": "revoke", "_selected_action": [str(row.pk)]})
    assert api_key(new_key) is not None


@pytest.mark.parametrize("model", TENANT_MODELS, ids=_label)
def test_no_page_of_an_owner_names_another_tenant(keeper: Client, other_tenant: Any, model: Any) -> None:
    """Neither lists, nor filters, nor what can be chosen."""
    foreign = make_deployment(other_tenant, title=f"Foreign {uuid4().hex}")
    pages = [keeper.get(_page(model, name)).content.decode() for name in ("changelist", "add")]
    assert [foreign.title in page or other_tenant.name in page for page in pages] == [False, False]


@pytest.mark.parametrize("query", ["tenant__slug__startswith=t", "user__password__startswith=p"])
def test_list_cannot_be_asked_about_what_it_does_not_show(keeper: Client, query: str) -> None:
    assert keeper.get(f"{_page(Membership, 'changelist')}?{query}").status_code in (302, 400)


@pytest.mark.parametrize("who", ["approver", "agent", "viewer", "stranger"])
@pytest.mark.parametrize("model", MODELS, ids=_label)
def test_others_see_no_list(who: str, model: Any, request: Any) -> None:
    assert _browser(request.getfixturevalue(who)).get(_page(model, "changelist")).status_code == 403


@pytest.mark.parametrize("model", PLATFORM_MODELS, ids=_label)
def test_owner_cannot_add_to_the_platform(keeper: Client, model: Any) -> None:
    assert keeper.post(_page(model, "add"), {}).status_code == 403


def test_person_loses_their_rights_with_the_role(owner: Any, tenant: Any) -> None:
    browser = _browser(owner)
    with tenant_scope(tenant):
        Membership.objects.filter(user=owner).update(role="viewer")
    assert browser.get(reverse("admin:index")).status_code == 403
