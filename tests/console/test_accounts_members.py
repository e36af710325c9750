"""Members and roles, invitations and API keys: what owners can do, and others can't."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
import time_machine
from django.test import Client
from django.urls import reverse

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.tenants import invitations, services
from apps.tenants.enums import Capability, Role
from apps.tenants.models import ApiKey, Invitation, Membership, User
from apps.tenants.rules import ROLES_WITH, roles_with
from kernel.clock import now
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.accounts import HOST, guest, is_in, link_in, log_in, sent_to
from tests.factories.console import browser
from tests.factories.tenants import make_member, make_user
from tests.rivals import race


def _membership(tenant: Any, user: Any) -> Any:
    with tenant_scope(tenant):
        return Membership.objects.get(user=user)


def _role(tenant: Any, user: Any) -> str:
    with tenant_scope(tenant):
        return str(Membership.objects.get(user=user).role)


def _entry(tenant: Any, event: AuditEvent) -> Any:
    with tenant_scope(tenant):
        return AuditEntry.objects.filter(event=event).order_by("-seq").first()


# --- the table of roles


def test_every_capability_has_its_roles_and_owners_have_all() -> None:
    assert set(ROLES_WITH) == set(Capability)
    assert all(Role.OWNER in roles for roles in ROLES_WITH.values())


def test_roles_with_takes_capabilities_and_roles() -> None:
    assert roles_with(Capability.DECIDE, Role.VIEWER) == (Role.OWNER, Role.APPROVER, Role.VIEWER)


def test_viewer_may_only_look() -> None:
    assert [one for one, roles in ROLES_WITH.items() if Role.VIEWER in roles] == [Capability.LOOK]


# --- roles and removal


def test_role_is_changed_and_written_down_with_what_it_was(tenant: Any, owner: Any, agent: Any) -> None:
    address = reverse("console-member-role", args=[_membership(tenant, agent).pk])
    browser(owner).post(address, {"role": "approver"})
    entry = _entry(tenant, AuditEvent.ROLE_CHANGED)
    assert _role(tenant, agent) == "approver"
    assert entry.actor == f"user:{owner.pk}"
    assert '"before":"agent"' in entry.data


def test_last_owner_stays_one(tenant: Any, owner: Any) -> None:
    address = reverse("console-member-role", args=[_membership(tenant, owner).pk])
    response = browser(owner).post(address, {"role": "viewer"})
    assert response.status_code == 409
    assert _role(tenant, owner) == "owner"


def test_two_owners_who_demote_each_other_leave_one(tenant: Any, owner: Any) -> None:
    rival = make_member(tenant, "owner")
    pair = [_membership(tenant, one) for one in (owner, rival)]

    def demote(other: Any) -> None:
        with tenant_scope(tenant):
            services.change_role(other, Role.VIEWER)

    answers = race(lambda: demote(pair[1]), lambda: demote(pair[0]))
    refused = [one for one in answers if isinstance(one, SilasError)]
    assert [one.code for one in refused] == ["last_owner"]
    assert sorted([_role(tenant, owner), _role(tenant, rival)]) == ["owner", "viewer"]


def test_two_owners_who_remove_each_other_leave_one(tenant: Any, owner: Any) -> None:
    rival = make_member(tenant, "owner")
    pair = [_membership(tenant, one) for one in (owner, rival)]

    def remove(other: Any) -> None:
        with tenant_scope(tenant):
            services.remove_member(other)

    race(lambda: remove(pair[1]), lambda: remove(pair[0]))
    with tenant_scope(tenant):
        assert Membership.objects.filter(role=Role.OWNER).count() == 1


def test_unknown_role_changes_nothing(tenant: Any, owner: Any, agent: Any) -> None:
    address = reverse("console-member-role", args=[_membership(tenant, agent).pk])
    assert browser(owner).post(address, {"role": "emperor"}).status_code == 409
    assert _role(tenant, agent) == "agent"


def test_member_is_removed_and_sees_nothing_any_more(tenant: Any, owner: Any, agent: Any) -> None:
    theirs = browser(agent)
    browser(owner).post(reverse("console-member-remove", args=[_membership(tenant, agent).pk]))
    assert theirs.get(reverse("console-inbox")).status_code == 403


@pytest.mark.parametrize("name", ["console-member-role", "console-member-remove"])
def test_member_of_another_tenant_is_not_found(tenant: Any, other_tenant: Any, owner: Any, name: str) -> None:
    foreign = _membership(other_tenant, make_member(other_tenant, "agent"))
    assert browser(owner).post(reverse(name, args=[foreign.pk]), {"role": "viewer"}).status_code == 404
    assert _membership(other_tenant, foreign.user).role == "agent"


def test_page_shows_nobody_of_another_tenant(owner: Any, other_tenant: Any) -> None:
    foreigner = make_member(other_tenant, "owner")
    assert foreigner.email not in browser(owner).get(reverse("console-members")).content.decode()


# --- invitations


@pytest.fixture
def address() -> str:
    return f"{uuid4().hex}@example.test"


def _invite(owner: Any, address: str, role: str = "agent") -> Any:
    client = browser(owner)
    client.defaults["HTTP_HOST"] = HOST
    return client.post(reverse("console-invite"), {"email": address, "role": role})


def _link(owner: Any, address: str) -> str:
    _invite(owner, address)
    return link_in(sent_to(address)[-1])


def _open(tenant: Any) -> list[Invitation]:
    with tenant_scope(tenant):
        return list(invitations.list_open())


NEWCOMER = {"name": "Ada Lovelace", "password": "a-quite-long-password"}


def test_invited_person_becomes_a_member_with_name_and_password(tenant: Any, owner: Any, address: str) -> None:
    client = guest()
    client.post(_link(owner, address), NEWCOMER)
    user = User.objects.get(email=address)
    assert user.display_name == "Ada Lovelace"
    assert _role(tenant, user) == "agent"
    assert is_in(client, user) is True


def test_invitation_makes_no_account_before_it_is_accepted(owner: Any, address: str) -> None:
    guest().get(_link(owner, address))
    assert not User.objects.filter(email=address).exists()


def test_link_stands_as_a_hash(tenant: Any, owner: Any, address: str) -> None:
    token = _link(owner, address).split("/")[-2]
    (row,) = _open(tenant)
    assert len(row.hashed) == 64
    assert token not in row.hashed


def test_link_is_good_once(owner: Any, address: str) -> None:
    link = _link(owner, address)
    guest().post(link, NEWCOMER)
    assert guest().post(link, NEWCOMER).status_code == 404


def test_rivals_with_one_link_make_one_member(tenant: Any, owner: Any, address: str) -> None:
    link = _link(owner, address)
    codes = race(*[lambda: guest().post(link, NEWCOMER).status_code] * 4)
    assert codes.count(302) == 1
    with tenant_scope(tenant):
        assert Membership.objects.filter(user__email=address).count() == 1


def test_link_is_dead_after_a_week(owner: Any, address: str) -> None:
    link = _link(owner, address)
    with time_machine.travel(now() + timedelta(days=7, minutes=1)):
        assert guest().post(link, NEWCOMER).status_code == 404


def test_link_sent_again_ends_the_old(tenant: Any, owner: Any, address: str) -> None:
    old = _link(owner, address)
    (row,) = _open(tenant)
    client = browser(owner)
    client.post(reverse("console-invite-again", args=[row.pk]), headers={"host": HOST})
    new = link_in(sent_to(address)[-1])
    assert guest().get(old).status_code == 404
    assert guest().get(new).status_code == 200


def test_invitation_taken_back_is_dead(tenant: Any, owner: Any, address: str) -> None:
    link = _link(owner, address)
    (row,) = _open(tenant)
    browser(owner).post(reverse("console-uninvite", args=[row.pk]))
    assert guest().post(link, NEWCOMER).status_code == 404


def test_invitation_taken_back_before_its_letter_left_sends_none(tenant: Any, owner: Any, address: str) -> None:
    _invite(owner, address)
    (row,) = _open(tenant)
    browser(owner).post(reverse("console-uninvite", args=[row.pk]))
    assert sent_to(address) == []


@pytest.mark.parametrize("name", ["console-invite-again", "console-uninvite"])
def test_invitation_of_another_tenant_is_not_found(tenant: Any, other_tenant: Any, address: str, name: str) -> None:
    foreigner = make_member(other_tenant, "owner")
    _invite(foreigner, address)
    (row,) = _open(other_tenant)
    assert browser(make_member(tenant, "owner")).post(reverse(name, args=[row.pk])).status_code == 404


def test_existing_account_joins_after_its_login_only(tenant: Any, owner: Any) -> None:
    person = make_user()
    link = _link(owner, person.email)
    assert guest().post(link, NEWCOMER).status_code == 409
    client = guest()
    log_in(client, person)
    client.post(link)
    assert _role(tenant, person) == "agent"


def test_somebody_elses_account_does_not_join(tenant: Any, owner: Any, stranger: Any, address: str) -> None:
    link, client = _link(owner, address), guest()
    log_in(client, stranger)
    assert client.post(link).status_code == 409
    assert _open(tenant)


def test_member_is_not_invited(owner: Any, agent: Any) -> None:
    assert _invite(owner, agent.email.upper()).status_code == 409


@pytest.mark.parametrize("wrong", ["", "nonsense", "a@b", "a@b.test\r\nBcc: c@d.test"])
def test_nonsense_is_not_invited(tenant: Any, owner: Any, wrong: str) -> None:
    assert _invite(owner, wrong).status_code == 409
    assert _open(tenant) == []


def test_weak_password_leaves_the_link_alive(owner: Any, address: str) -> None:
    link = _link(owner, address)
    assert guest().post(link, {"name": "Ada", "password": "short"}).status_code == 400
    assert guest().get(link).status_code == 200


@pytest.mark.parametrize("token", ["x", "A" * 43, "%00", "é"])
def test_forged_link_is_dead(database: None, token: str) -> None:
    assert guest().get(f"/console/invitation/{token}/").status_code == 404


def test_link_that_was_made_for_no_letter_yet_is_not_found_by_nothing(owner: Any, address: str) -> None:
    """An invitation without a link has an empty hash: nothing may hash to it."""
    _invite(owner, address)
    assert invitations.find_by_token("") is None


def test_accepting_by_a_form_of_another_site_is_refused(owner: Any, address: str) -> None:
    link = _link(owner, address)
    assert Client(enforce_csrf_checks=True).post(link, NEWCOMER).status_code == 403


def test_without_a_mail_server_the_link_is_shown_once(owner: Any, address: str, settings: Any) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    page = _invite(owner, address).content.decode()
    link = re.search(r"/console/invitation/[\w-]+/", page)
    assert link
    assert guest().get(link[0]).status_code == 200
    assert link[0] not in browser(owner).get(reverse("console-members")).content.decode()


def test_letter_that_could_not_be_sent_shows_on_the_page(owner: Any, address: str, settings: Any) -> None:
    settings.EMAIL_BACKEND = "tests.fakes.mail.Broken"
    _invite(owner, address)
    sent_to(address)
    assert "Connectionrefusederror" in browser(owner).get(reverse("console-members")).content.decode().title()


def test_acceptance_is_written_down(tenant: Any, owner: Any, address: str) -> None:
    guest().post(_link(owner, address), NEWCOMER)
    assert _entry(tenant, AuditEvent.INVITATION_ACCEPTED).actor == f"user:{User.objects.get(email=address).pk}"


# --- API keys


def _make_key(owner: Any) -> tuple[Any, str]:
    client = browser(owner)
    page = client.post(reverse("console-api-key-make"), {"name": "Importer"}).content.decode()
    found = re.search(r"sk_[\w-]{43}", page)
    assert found is not None
    return client, found[0]


def test_key_is_shown_once_and_opens_the_api(owner: Any) -> None:
    client, key = _make_key(owner)
    assert Client().get("/api/v1/gates", headers={"authorization": f"Bearer {key}"}).status_code == 200
    assert key not in client.get(reverse("console-api-keys")).content.decode()


@pytest.mark.parametrize("page", ["console-api-key-make", "console-safety-key"])
def test_page_with_a_key_that_is_sent_again_shows_none_and_makes_no_other(tenant: Any, owner: Any, page: str) -> None:
    """As a browser does when its answer is reloaded."""
    client, sent = browser(owner), {"name": "Importer", "once": str(uuid4())}
    assert "sk_" in client.post(reverse(page), sent).content.decode()
    assert client.post(reverse(page), sent).status_code == client.get(reverse(page)).status_code == 302
    with tenant_scope(tenant):
        assert ApiKey.objects.count() == 1


def test_mark_of_one_companys_form_says_nothing_in_another(owner: Any, other_tenant: Any) -> None:
    sent = {"name": "Importer", "once": str(uuid4())}
    for user in (make_member(other_tenant, Role.OWNER), owner):
        assert "sk_" in browser(user).post(reverse("console-api-key-make"), sent).content.decode()


def test_key_says_when_it_was_last_used(tenant: Any, owner: Any) -> None:
    client, key = _make_key(owner)
    assert "never used" in client.get(reverse("console-api-keys")).content.decode()
    Client().get("/api/v1/gates", headers={"authorization": f"Bearer {key}"})
    assert "last used" in client.get(reverse("console-api-keys")).content.decode()


def test_revoked_key_opens_nothing(tenant: Any, owner: Any) -> None:
    client, key = _make_key(owner)
    with tenant_scope(tenant):
        row = ApiKey.objects.get()
    client.post(reverse("console-api-key-revoke", args=[row.pk]))
    assert Client().get("/api/v1/gates", headers={"authorization": f"Bearer {key}"}).status_code == 401


def test_key_of_another_tenant_is_not_found(tenant: Any, other_tenant: Any, owner: Any) -> None:
    foreigner = make_member(other_tenant, "owner")
    _, key = _make_key(foreigner)
    with tenant_scope(other_tenant):
        row = ApiKey.objects.get()
    assert browser(owner).post(reverse("console-api-key-revoke", args=[row.pk])).status_code == 404
    assert Client().get("/api/v1/gates", headers={"authorization": f"Bearer {key}"}).status_code == 200


def test_key_without_a_name_is_not_made(tenant: Any, owner: Any) -> None:
    assert browser(owner).post(reverse("console-api-key-make"), {"name": "  "}).status_code == 409
