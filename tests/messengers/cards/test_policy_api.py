"""The policy of cards in channels over the REST API."""

from __future__ import annotations

from typing import Any

import pytest

from apps.audit.models import AuditEntry
from apps.messengers.cards import accounts
from apps.tenants.enums import KeyScope
from kernel.tenancy import tenant_scope
from tests.factories.api import Api, code
from tests.factories.slack import make_slack_channel, slack_server
from tests.factories.tenants import make_deployment, make_member

ADDRESS = "/api/v1/card-policy"


@pytest.fixture
def channel(deployment: Any) -> Any:
    with slack_server():
        yield make_slack_channel(deployment)


def test_policy_is_read_changed_and_certified(tenant: Any, channel: Any, owner: Any, approver: Any) -> None:
    api = Api(tenant)
    read = api.get(ADDRESS)
    assert read.json() == {
        "enabled": False,
        "channels": [],
        "people": [],
        "decide_in_place": False,
        "verified_days": 30,
    }
    body = {"enabled": True, "channels": ["email", str(channel.pk)], "people": [str(approver.pk)]}
    changed = api.patch(ADDRESS, body, if_match=read["ETag"])
    assert changed.status_code == 200
    assert changed.json() == {**read.json(), **body}
    with tenant_scope(tenant):
        row = accounts.policy()
        entry = AuditEntry.objects.get(event="card_channels_set")
    assert row is not None
    assert row.channels == body["channels"]
    assert entry.actor == api.actor
    stale = api.patch(ADDRESS, {"enabled": False}, if_match=read["ETag"])
    assert code(stale) == (412, "changed_meanwhile")
    assert api.patch(ADDRESS, {"verified_days": 7}, if_match=changed["ETag"]).json()["enabled"] is True


def test_owner_changes_it_in_their_session_and_other_roles_do_not(tenant: Any, channel: Any, owner: Any) -> None:
    assert Api(tenant, member=owner).patch(ADDRESS, {"enabled": True}).status_code == 200
    for role in ("approver", "agent", "viewer"):
        member = Api(tenant, member=make_member(tenant, role))
        assert code(member.get(ADDRESS)) == (403, "forbidden_role")
        assert code(member.patch(ADDRESS, {"enabled": False})) == (403, "forbidden_role")
    assert Api(tenant).get(ADDRESS).json()["enabled"] is True


def test_scopes_let_read_and_change_but_not_let_buttons_decide(tenant: Any, channel: Any) -> None:
    reader = Api(tenant, KeyScope.SETTINGS_READ)
    assert reader.get(ADDRESS).status_code == 200
    assert code(reader.patch(ADDRESS, {"enabled": True})) == (403, "forbidden_scope")
    writer = Api(tenant, KeyScope.SETTINGS_READ, KeyScope.SETTINGS_WRITE)
    assert writer.patch(ADDRESS, {"enabled": True, "verified_days": 60}).status_code == 200
    assert code(writer.patch(ADDRESS, {"decide_in_place": True})) == (403, "forbidden_scope")
    assert Api(tenant).patch(ADDRESS, {"decide_in_place": True}).status_code == 200
    assert code(writer.patch(ADDRESS, {"verified_days": 61})) == (403, "forbidden_scope")
    assert code(writer.patch(ADDRESS, {"people": []})) == (403, "forbidden_scope")
    assert Api(tenant).patch(ADDRESS, {"enabled": False}).status_code == 200
    assert code(writer.patch(ADDRESS, {"enabled": True})) == (403, "forbidden_scope")
    assert writer.patch(ADDRESS, {"verified_days": 5}).status_code == 200
    assert writer.patch(ADDRESS, {"decide_in_place": False}).json()["decide_in_place"] is False


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        ({"colour": "red"}, (400, "invalid")),
        ({"verified_days": 0}, (400, "invalid")),
        ({"channels": "email"}, (400, "invalid")),
        ({"channels": ["nothing"]}, (400, "channel_settings")),
    ],
)
def test_wrong_change_is_refused(tenant: Any, body: dict[str, Any], refusal: tuple[int, str]) -> None:
    assert code(Api(tenant).patch(ADDRESS, body)) == refusal


def test_another_tenants_channel_and_member_are_unknown(tenant: Any, other_tenant: Any, channel: Any) -> None:
    foreign = make_slack_channel(make_deployment(other_tenant))
    stranger = make_member(other_tenant, "owner")
    refused = Api(tenant).patch(ADDRESS, {"channels": [str(foreign.pk)], "people": [str(stranger.pk)]})
    assert code(refused) == (400, "channel_settings")
    assert refused.json()["error"]["extra"]["fields"] == {"channels": "unknown", "people": "unknown"}
    assert Api(other_tenant).get(ADDRESS).json()["channels"] == []
