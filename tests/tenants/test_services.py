"""Are tenants, members, deployments and API keys made as asked, written down, and nothing else?"""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
from django.core.exceptions import ValidationError

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.tenants import queries, services
from apps.tenants.enums import Role
from apps.tenants.models import ApiKey, Deployment, Membership, Tenant, User
from kernel.errors import NotFound, SilasError
from kernel.tenancy import ScopeError, tenant_scope
from llm.models import is_known
from tests.factories.tenants import make_member
from tests.rivals import race


def _email() -> str:
    return f"{uuid4().hex}@example.test"


def _entries(tenant: Tenant, event: AuditEvent) -> list[Any]:
    with tenant_scope(tenant):
        return list(AuditEntry.objects.filter(event=event))


def _new_key(tenant: Tenant) -> services.NewApiKey:
    with tenant_scope(tenant):
        return services.create_api_key("Website")


def test_tenant_is_made_with_its_owner(database: None) -> None:
    email = _email()
    new = services.create_tenant(f"t-{uuid4().hex[:9]}", name="Desk", owner_email=email)
    assert new.membership.user.email == email
    assert new.membership.role == Role.OWNER
    assert bool(new.welcome)


@pytest.mark.parametrize("email", ["", "no-address", "a@b", "a b@example.test"])
def test_tenant_whose_owner_has_no_address_is_not_made(database: None, email: str) -> None:
    slug = f"t-{uuid4().hex[:9]}"
    with pytest.raises(SilasError):
        services.create_tenant(slug, name="Desk", owner_email=email)
    assert not Tenant.objects.filter(slug=slug).exists()


@pytest.mark.parametrize("zone", ["", "Europe/Atlantis", "../etc/passwd", "localtime"])
def test_tenant_in_no_time_zone_is_not_made(database: None, zone: str) -> None:
    slug = f"t-{uuid4().hex[:9]}"
    with pytest.raises(SilasError) as refusal:
        services.create_tenant(slug, name="Desk", owner_email=_email(), timezone=zone)
    assert refusal.value.code == "unknown_timezone"
    assert not Tenant.objects.filter(slug=slug).exists()


def test_tenant_is_not_moved_to_a_time_zone_that_does_not_exist(tenant: Any) -> None:
    with pytest.raises(SilasError) as refusal:
        services.change_tenant(tenant, timezone="Mars/Base")
    tenant.refresh_from_db()
    assert refusal.value.code == "unknown_timezone"
    assert refusal.value.status == 422
    assert tenant.timezone == "Europe/London"


@pytest.mark.parametrize("model", [Tenant, Deployment])
def test_form_refuses_a_time_zone_that_does_not_exist(model: Any) -> None:
    with pytest.raises(ValidationError) as refusal:
        model._meta.get_field("timezone").clean("Mars/Base", None)
    assert [error.code for error in refusal.value.error_list] == ["unknown_timezone"]


def test_member_who_has_an_account_gets_no_link(tenant: Any, stranger: Any) -> None:
    with tenant_scope(tenant):
        new = services.add_member(stranger.email.upper(), role=Role.AGENT)
    assert new.membership.user == stranger
    assert new.welcome == ""


def test_member_keeps_their_name_and_password_elsewhere(tenant: Any, stranger: Any) -> None:
    with tenant_scope(tenant):
        services.add_member(stranger.email, role=Role.AGENT, full_name="Some Body", password="another-long-one")
    stranger.refresh_from_db()
    assert stranger.first_name == ""
    assert stranger.check_password("a-long-password")


def test_member_cannot_be_added_twice(tenant: Any, agent: Any) -> None:
    with tenant_scope(tenant), pytest.raises(SilasError) as refusal:
        services.add_member(agent.email, role=Role.OWNER)
    assert refusal.value.code == "member_exists"


def test_member_outside_of_a_tenant_is_refused(database: None) -> None:
    with pytest.raises(ScopeError):
        services.add_member(_email(), role=Role.OWNER)


def test_role_is_changed_and_written_down(tenant: Any, agent: Any) -> None:
    with tenant_scope(tenant):
        services.change_role(Membership.objects.get(user=agent), Role.APPROVER, actor="user:1")
    (entry,) = _entries(tenant, AuditEvent.ROLE_CHANGED)
    assert entry.actor == "user:1"
    assert entry.subject == f"user:{agent.pk}"
    assert entry.data == '{"before":"agent","role":"approver"}'


def _membership(tenant: Tenant, user: Any) -> Membership:
    with tenant_scope(tenant):
        found: Membership = Membership.objects.get(user=user)
        return found


def _demote(tenant: Tenant, user: Any) -> None:
    with tenant_scope(tenant):
        services.change_role(Membership.objects.get(user=user), Role.AGENT)


def _remove(tenant: Tenant, user: Any) -> None:
    with tenant_scope(tenant):
        services.remove_member(Membership.objects.get(user=user), actor="user:1")


@pytest.mark.parametrize("end", [_demote, _remove])
def test_last_owner_stays_owner(tenant: Any, owner: Any, agent: Any, end: Any) -> None:
    with pytest.raises(SilasError) as refusal:
        end(tenant, owner)
    assert refusal.value.code == "last_owner"
    assert refusal.value.status == 409
    assert _membership(tenant, owner).role == Role.OWNER


@pytest.mark.parametrize("end", [_demote, _remove])
def test_owner_beside_one_who_cannot_log_in_is_the_last(tenant: Any, owner: Any, end: Any) -> None:
    User.objects.filter(pk=make_member(tenant, Role.OWNER).pk).update(is_active=False)
    with pytest.raises(SilasError, match="at least one owner"):
        end(tenant, owner)


@pytest.mark.parametrize("end", [_demote, _remove])
def test_one_of_two_owners_may_go(tenant: Any, owner: Any, end: Any) -> None:
    make_member(tenant, Role.OWNER)
    end(tenant, owner)
    with tenant_scope(tenant):
        assert Membership.objects.filter(role=Role.OWNER).count() == 1


@pytest.mark.parametrize("end", [_demote, _remove])
def test_two_owners_who_end_each_other_at_once_leave_one(tenant: Any, owner: Any, end: Any) -> None:
    other = make_member(tenant, Role.OWNER)
    outcomes = race(lambda: end(tenant, other), lambda: end(tenant, owner))
    assert sorted(getattr(one, "code", "") for one in outcomes) == ["", "last_owner"]


def test_last_owner_elsewhere_is_not_counted_here(tenant: Any, other_tenant: Any, owner: Any) -> None:
    make_member(other_tenant, Role.OWNER)
    with pytest.raises(SilasError, match="at least one owner"):
        _demote(tenant, owner)


def test_member_who_is_removed_is_written_down(tenant: Any, owner: Any, agent: Any) -> None:
    _remove(tenant, agent)
    (entry,) = _entries(tenant, AuditEvent.MEMBER_REMOVED)
    assert entry.actor == "user:1"
    assert entry.subject == f"user:{agent.pk}"
    assert entry.data == '{"role":"agent"}'


def test_role_that_stays_is_not_written_down(tenant: Any, agent: Any) -> None:
    with tenant_scope(tenant):
        services.change_role(Membership.objects.get(user=agent), Role.AGENT)
    assert _entries(tenant, AuditEvent.ROLE_CHANGED) == []


def test_password_by_one_link_is_set_once(tenant: Any) -> None:
    with tenant_scope(tenant):
        user = services.add_member(_email(), role=Role.AGENT).membership.user
    rival = User.objects.get(pk=user.pk)
    assert [services.set_first_password(user, "first-password"), services.set_first_password(rival, "second-one")] == [
        True,
        False,
    ]


def test_deployment_with_bad_settings_is_refused_with_every_reason(tenant: Any) -> None:
    with tenant_scope(tenant), pytest.raises(SilasError) as refusal:
        services.create_deployment("desk", title="D", public_key="k-desk", theme=[], allowed_origins=["*"])
    assert set(refusal.value.extra["fields"]) == {"theme", "allowed_origins"}


def test_deployment_is_made_and_written_down(tenant: Any) -> None:
    with tenant_scope(tenant):
        made = services.create_deployment("desk", title="D", public_key=f"k-{uuid4().hex[:9]}")
    (entry,) = _entries(tenant, AuditEvent.DEPLOYMENT_CREATED)
    assert entry.subject == f"deployment:{made.pk}"


def test_changed_deployment_names_the_changed_fields_only(tenant: Any, deployment: Any) -> None:
    with tenant_scope(tenant):
        services.change_deployment(deployment, title=deployment.title, greeting="Good morning")
    (entry,) = _entries(tenant, AuditEvent.DEPLOYMENT_CHANGED)
    assert json.loads(entry.data) == {"fields": ["greeting"]}


def test_deployment_changed_badly_stays_as_it_was(tenant: Any, deployment: Any) -> None:
    with tenant_scope(tenant), pytest.raises(SilasError):
        services.change_deployment(deployment, greeting="Other", model_names={})
    with tenant_scope(tenant):
        assert Deployment.objects.get(pk=deployment.pk).greeting == ""


def test_api_key_finds_its_tenant(tenant: Any) -> None:
    found = queries.api_key(_new_key(tenant).key)
    assert found is not None
    assert found.tenant == tenant


def test_api_key_is_stored_as_a_hash_only(tenant: Any) -> None:
    made = _new_key(tenant)
    with tenant_scope(tenant):
        stored = ApiKey.objects.values().get(pk=made.row.pk)
    assert made.key not in str(stored)
    assert made.key.startswith(stored["prefix"])


def test_api_key_is_not_in_the_audit_log(tenant: Any) -> None:
    made = _new_key(tenant)
    (entry,) = _entries(tenant, AuditEvent.API_KEY_CREATED)
    assert made.row.prefix not in f"{entry.subject} {entry.data}"


@pytest.mark.parametrize("change", [lambda key: key[:-1] + ("A" if key[-1] != "A" else "B"), str.upper, lambda key: ""])
def test_api_key_that_differs_finds_nothing(tenant: Any, change: Any) -> None:
    assert queries.api_key(change(_new_key(tenant).key)) is None


def test_api_keys_hash_is_no_key(tenant: Any) -> None:
    assert queries.api_key(_new_key(tenant).row.hashed) is None


def test_revoked_api_key_finds_nothing(tenant: Any) -> None:
    made = _new_key(tenant)
    with tenant_scope(tenant):
        services.revoke_api_key(made.row)
    assert queries.api_key(made.key) is None


def test_api_key_is_revoked_once(tenant: Any) -> None:
    made = _new_key(tenant)
    with tenant_scope(tenant):
        answers = [services.revoke_api_key(made.row), services.revoke_api_key(made.row)]
    assert answers == [True, False]
    assert len(_entries(tenant, AuditEvent.API_KEY_REVOKED)) == 1


def test_foreign_api_key_cannot_be_revoked(tenant: Any, other_tenant: Any) -> None:
    made = _new_key(other_tenant)
    with tenant_scope(tenant), pytest.raises(NotFound):
        services.revoke_api_key(made.row)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("builtin:grounded", True),
        ("openai:anything", True),
        ("openrouter:a/b", True),
        ("ollama:llama", True),
        ("anthropic:claude", True),
        ("builtin:other", False),
        ("nobody:model", False),
        ("openai:", False),
        (":model", False),
        ("model", False),
        ("", False),
    ],
)
def test_model_is_known_by_its_provider(name: str, known: bool) -> None:
    assert is_known(name) is known
