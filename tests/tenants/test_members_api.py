"""Members and invitations over the REST API."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.test import override_settings

from apps.audit.models import AuditEntry
from apps.tenants.enums import KeyScope, Role
from apps.tenants.models import Invitation, Letter, Membership
from kernel.tenancy import tenant_scope
from tests.factories.api import Api, code
from tests.factories.tenants import make_member

MEMBERS, INVITATIONS = "/api/v1/members", "/api/v1/invitations"
ADA = {"email": "ada@example.test", "role": "agent"}


@pytest.fixture
def api(tenant: Any) -> Api:
    return Api(tenant)


@pytest.fixture
def limited(tenant: Any) -> Api:
    return Api(tenant, KeyScope.MEMBERS_READ, KeyScope.MEMBERS_WRITE)


def membership_of(tenant: Any, user: Any) -> Membership:
    with tenant_scope(tenant):
        return Membership.objects.get(user=user)


def test_role_is_changed_unless_it_changed_meanwhile(tenant: Any, api: Api) -> None:
    row = membership_of(tenant, make_member(tenant, "viewer"))
    read = api.get(f"{MEMBERS}/{row.pk}")
    changed = api.patch(f"{MEMBERS}/{row.pk}", {"role": "agent"}, if_match=read["ETag"])
    stale = api.patch(f"{MEMBERS}/{row.pk}", {"role": "approver"}, if_match=read["ETag"])
    assert changed.json()["role"] == "agent"
    assert code(stale) == (412, "changed_meanwhile")
    with tenant_scope(tenant):
        entry = AuditEntry.objects.get(event="role_changed")
    assert entry.actor == api.actor


def test_member_is_removed_and_the_last_owner_stays(tenant: Any, api: Api) -> None:
    owner = membership_of(tenant, make_member(tenant, "owner"))
    row = membership_of(tenant, make_member(tenant, "viewer"))
    assert api.delete(f"{MEMBERS}/{row.pk}").status_code == 204
    assert code(api.get(f"{MEMBERS}/{row.pk}")) == (404, "not_found")
    assert code(api.delete(f"{MEMBERS}/{owner.pk}")) == (409, "last_owner")
    assert code(api.patch(f"{MEMBERS}/{owner.pk}", {"role": "viewer"})) == (409, "last_owner")


def test_invitation_is_emailed_sent_again_and_revoked(tenant: Any, api: Api) -> None:
    made = api.post(INVITATIONS, ADA)
    assert made.status_code == 201
    assert made.json()["link"] == ""
    assert made.json()["invited_by"] is None
    again = api.post(f"{INVITATIONS}/{made.json()['id']}/resend")
    assert again.status_code == 200
    assert [row["email"] for row in api.get(INVITATIONS).json()["invitations"]] == [ADA["email"]]
    with tenant_scope(tenant):
        assert Letter.objects.filter(kind="invitation", company_id=tenant.pk).count() == 2
        assert AuditEntry.objects.filter(event="member_invited", actor=api.actor).count() == 2
    assert api.delete(f"{INVITATIONS}/{made.json()['id']}").status_code == 204
    assert api.get(INVITATIONS).json()["invitations"] == []
    assert code(api.post(f"{INVITATIONS}/{made.json()['id']}/resend")) == (404, "not_found")


@override_settings(EMAIL_BACKEND="django.core.mail.backends.smtp.EmailBackend", EMAIL_HOST="")
def test_link_is_shown_where_no_mail_can_be_sent_and_not_kept(api: Api) -> None:
    made = api.post(INVITATIONS, ADA, idempotency_key="a")
    assert made.json()["link"].startswith("http://testserver/console/invitation/")
    assert code(api.post(INVITATIONS, ADA, idempotency_key="a")) == (409, "answer_not_kept")


def test_member_who_invites_is_named(tenant: Any) -> None:
    owner = make_member(tenant, "owner")
    made = Api(tenant, member=owner).post(INVITATIONS, ADA)
    assert made.json()["invited_by"] == str(owner.pk)


@pytest.mark.parametrize("body", [{}, {**ADA, "colour": "red"}, {**ADA, "role": "king"}, {**ADA, "email": "ada"}])
def test_wrong_invitation_is_refused(api: Api, body: dict[str, Any]) -> None:
    assert code(api.post(INVITATIONS, body)) == (400, "invalid")


def test_member_is_not_invited(tenant: Any, api: Api) -> None:
    user = make_member(tenant, "viewer")
    assert code(api.post(INVITATIONS, {**ADA, "email": user.email})) == (409, "member_exists")


def test_limited_key_neither_makes_nor_unmakes_owners_and_approvers(tenant: Any, api: Api, limited: Api) -> None:
    owner = membership_of(tenant, make_member(tenant, "owner"))
    viewer = membership_of(tenant, make_member(tenant, "viewer"))
    invited = api.post(INVITATIONS, {**ADA, "role": "owner"}).json()["id"]
    assert code(limited.post(INVITATIONS, {**ADA, "role": "owner"})) == (403, "forbidden_scope")
    assert code(limited.post(f"{INVITATIONS}/{invited}/resend")) == (403, "forbidden_scope")
    assert code(limited.delete(f"{INVITATIONS}/{invited}")) == (403, "forbidden_scope")
    assert code(limited.patch(f"{MEMBERS}/{viewer.pk}", {"role": "owner"})) == (403, "forbidden_scope")
    assert code(limited.patch(f"{MEMBERS}/{owner.pk}", {"role": "viewer"})) == (403, "forbidden_scope")
    assert code(limited.delete(f"{MEMBERS}/{owner.pk}")) == (403, "forbidden_scope")
    assert code(limited.patch(f"{MEMBERS}/{viewer.pk}", {"role": "approver"})) == (403, "forbidden_scope")
    assert code(limited.post(INVITATIONS, {**ADA, "role": "approver"})) == (403, "forbidden_scope")
    assert limited.patch(f"{MEMBERS}/{viewer.pk}", {"role": "agent"}).status_code == 200


def test_nothing_of_another_company_is_found(tenant: Any, other_tenant: Any, api: Api) -> None:
    row, foreign = membership_of(tenant, make_member(tenant, "viewer")), Api(other_tenant)
    invited = api.post(INVITATIONS, ADA).json()["id"]
    assert code(foreign.get(f"{MEMBERS}/{row.pk}")) == (404, "not_found")
    assert code(foreign.patch(f"{MEMBERS}/{row.pk}", {"role": "owner"})) == (404, "not_found")
    assert code(foreign.delete(f"{MEMBERS}/{row.pk}")) == (404, "not_found")
    assert code(foreign.delete(f"{INVITATIONS}/{invited}")) == (404, "not_found")
    assert code(foreign.post(f"{INVITATIONS}/{invited}/resend")) == (404, "not_found")
    assert foreign.get(INVITATIONS).json()["invitations"] == []


def test_other_roles_and_readers_change_nothing(tenant: Any) -> None:
    approver, reader = Api(tenant, member=make_member(tenant, "approver")), Api(tenant, KeyScope.MEMBERS_READ)
    assert code(approver.get(INVITATIONS)) == (403, "forbidden_role")
    assert code(reader.post(INVITATIONS, ADA)) == (403, "forbidden_scope")
    assert code(reader.delete(f"{MEMBERS}/{uuid4()}")) == (403, "forbidden_scope")
    with tenant_scope(tenant):
        assert not Invitation.objects.exists()
        assert not Membership.objects.filter(role=Role.OWNER).exists()
