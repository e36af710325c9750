"""Account → Channels: the code that links an account, its removal, and the owner's policy."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.urls import reverse

from apps.messengers.cards import accounts
from apps.messengers.models import ApproverAccount, Channel
from kernel.tenancy import tenant_scope
from tests.factories.accounts import PASSWORD
from tests.factories.console import browser
from tests.factories.slack import make_slack_channel, say, slack_server
from tests.factories.tenants import make_member


@pytest.fixture
def channel(deployment: Any) -> Any:
    with slack_server():
        yield make_slack_channel(deployment)


def post(user: Any, name: str, *args: object, **body: object) -> Any:
    return browser(user).post(reverse(f"console-account-channel-{name}", args=args), body)


def test_code_is_shown_after_the_password_and_links_the_account(channel: Channel, approver: Any) -> None:
    assert post(approver, "code", password="wrong").status_code == 403
    shown = post(approver, "code", password=PASSWORD).content.decode()
    code = re.search(r"LINK-[A-Z2-9-]+", shown)
    assert code is not None
    say(channel, code[0])
    page = browser(approver).get(reverse("console-account-channels")).content.decode()
    assert "T1:U1" in page
    with tenant_scope(channel.tenant_id):
        row = ApproverAccount.objects.get()
    stranger = make_member(channel.tenant, "approver")
    assert post(stranger, "remove", row.pk).status_code == 404
    assert post(approver, "remove", row.pk).status_code == 302
    with tenant_scope(channel.tenant_id):
        assert not ApproverAccount.objects.exists()


def test_owner_sets_the_policy_in_order(channel: Channel, owner: Any, approver: Any) -> None:
    body = {
        "enabled": "on",
        "verified_days": "7",
        "channels_1": "email",
        "channels_2": str(channel.pk),
        "people_1": str(approver.pk),
    }
    assert post(approver, "policy", **body).status_code == 403
    assert post(owner, "policy", **{**body, "verified_days": "0"}).status_code == 400
    viewer = make_member(channel.tenant, "viewer")
    assert post(owner, "policy", **{**body, "people_1": str(viewer.pk)}).status_code == 400
    assert post(owner, "policy", **body).status_code == 302
    with tenant_scope(channel.tenant_id):
        row = accounts.policy()
    assert row is not None
    assert row.channels == ["email", str(channel.pk)]
    assert row.people == [str(approver.pk)]
    assert row.decide_in_place is False
    page = browser(owner).get(reverse("console-account-channels")).content.decode()
    assert 'name="verified_days" value="7"' in page
