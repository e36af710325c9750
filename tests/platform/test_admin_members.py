"""Members join by a link that works once and can be removed; the last owner stays."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse

from apps.tenants.models import Membership, User
from kernel.tenancy import tenant_scope
from tests.factories.tenants import make_member
from tests.platform.administration import browser_of, page_of


def test_new_member_gets_a_link_that_works_once_and_with_a_strong_password(keeper: Client, tenant: Any) -> None:
    email = f"new-{uuid4().hex}@example.test"
    page = keeper.post(page_of(Membership, "add"), {"email": email, "role": "agent"}, follow=True).content.decode()
    found = re.search(r"http://testserver(/console/welcome/[\w/-]+/)", page)
    assert found
    guest = Client()
    assert guest.post(found[1], {"password": "password"}).status_code == 400
    assert guest.post(found[1], {"password": "a-quite-long-password"})["Location"] == reverse("console")
    assert Client().get(found[1]).status_code == 404


def test_member_with_an_account_gets_no_link(keeper: Client, stranger: Any) -> None:
    """A link would let one tenant's owner take over somebody else's account."""
    page = keeper.post(page_of(Membership, "add"), {"email": stranger.email, "role": "agent"}, follow=True)
    assert "/console/welcome/" not in page.content.decode()


def test_account_that_another_tenant_s_owner_may_have_made_is_not_let_in(
    keeper: Client, tenant: Any, other_tenant: Any
) -> None:
    """An owner registers the address of a person who will join somebody else, sets a password, and waits."""
    email = f"boss-{uuid4().hex}@example.test"
    elsewhere = browser_of(make_member(other_tenant, "owner"))
    elsewhere.post(page_of(Membership, "add"), {"email": email, "role": "viewer"})
    page = keeper.post(page_of(Membership, "add"), {"email": email.upper(), "role": "owner"}, follow=True)
    with tenant_scope(tenant):
        assert not Membership.objects.filter(user__email=email).exists()
    assert "already exists" in page.content.decode()


def test_superuser_lets_an_account_in(root: Client, tenant: Any, stranger: Any) -> None:
    root.post(page_of(Membership, "add"), {"email": stranger.email, "role": "agent", "tenant": str(tenant.pk)})
    with tenant_scope(tenant):
        assert Membership.objects.filter(user=stranger).exists()


def test_member_cannot_be_added_twice(keeper: Client, agent: Any) -> None:
    page = keeper.post(page_of(Membership, "add"), {"email": agent.email.upper(), "role": "owner"})
    assert "already a member" in page.content.decode()


@pytest.mark.parametrize("link", ["/console/welcome/x/y/", f"/console/welcome/{'A' * 30}/c-0/"])
def test_broken_welcome_link_says_so(database: None, link: str) -> None:
    page = Client().get(link)
    assert page.status_code == 404 and "is no longer valid" in page.content.decode()


@pytest.mark.parametrize(
    ("who", "page", "sent"),
    [
        ("keeper", "change", {"role": "agent"}),
        ("keeper", "delete", {"post": "yes"}),
        ("root", "delete", {"post": "yes"}),
    ],
)
def test_last_owner_cannot_be_demoted_or_removed_at_the_administration(
    who: str, page: str, sent: dict[str, str], tenant: Any, owner: Any, request: Any
) -> None:
    answer = request.getfixturevalue(who).post(page_of(Membership, page, _membership(tenant, owner).pk), sent)
    assert "at least one owner" in answer.content.decode()
    assert _membership(tenant, owner).role == "owner"


def test_all_owners_chosen_at_once_are_refused(root: Client, tenant: Any, owner: Any) -> None:
    chosen = [_membership(tenant, one).pk for one in (owner, make_member(tenant, "owner"))]
    data = {"action": "delete_selected", "_selected_action": chosen, "post": "yes"}
    assert root.post(page_of(Membership, "changelist"), data).status_code == 409
    with tenant_scope(tenant):
        assert Membership.objects.filter(role="owner").count() == 2


def test_member_is_removed_by_an_owner(keeper: Client, tenant: Any, agent: Any) -> None:
    keeper.post(page_of(Membership, "delete", _membership(tenant, agent).pk), {"post": "yes"})
    with tenant_scope(tenant):
        assert not Membership.objects.filter(user=agent).exists()


def test_person_loses_their_rights_with_the_role(owner: Any, tenant: Any) -> None:
    browser = browser_of(owner)
    with tenant_scope(tenant):
        Membership.objects.filter(user=owner).update(role="viewer")
    assert browser.get(reverse("admin:index")).status_code == 403


def test_person_is_not_deleted_with_what_they_decided(root: Client, owner: Any) -> None:
    assert root.post(page_of(User, "delete", owner.pk), {"post": "yes"}).status_code == 403


def _membership(tenant: Any, user: Any) -> Membership:
    with tenant_scope(tenant):
        found: Membership = Membership.objects.get(user=user)
        return found
