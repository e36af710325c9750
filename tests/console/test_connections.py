"""Connecting accounts: who may, and the pages during set-up, in use and after a failure."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.urls import reverse

from apps.approvals.models import Card
from apps.connections import pending_secrets
from apps.connections.enums import ConnectionStatus, SetupState
from apps.connections.models import Connection, Credential, SetupRun
from apps.console.pages.connections import forms
from apps.skills.schemas import SkillManifest
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.connections.links import FRONT, link, make_skill, said_yes
from tests.factories.console import browser
from tests.factories.tenants import make_member

DEVICE = {
    "type": "device_code",
    "verification_url": "https://login.example.test/device",
    "user_code": "WDJB-MJHT",
    "expires_in": 600,
}
REDIRECT = {"type": "browser_redirect", "auth_url": "https://login.example.test/authorize?state=x"}
DEEDS = ["cancel", "sign-in", "reconnect", "pause", "resume", "remove", "widen", "choose", "it-request", "done"]


@pytest.fixture
def other_owner(other_tenant: Any) -> Any:
    return make_member(other_tenant, "owner")


@pytest.fixture
def row(tenant: Any) -> Connection:
    """Requested and not approved yet."""
    return link(tenant)


def asking(tenant: Any, row: Connection, user: Any, step: dict[str, Any]) -> SetupRun:
    """Its set-up shows this step, as a worker would have it."""
    setup = said_yes(tenant, row, user)
    assert setup is not None
    with tenant_scope(tenant):
        if step["type"] == "secure_input":
            step["request"]["ref_id"] = str(pending_secrets.request_secret(setup, "value").pk)
        SetupRun.objects.filter(pk=setup.pk).update(state=SetupState.ASKING, step=step, step_id="one")
    return setup


def standing(tenant: Any, row: Connection, status: ConnectionStatus, **fields: Any) -> None:
    with tenant_scope(tenant):
        Connection.objects.filter(pk=row.pk).update(status=status, **fields)


def page_of(user: Any, row: Connection) -> str:
    return str(browser(user).get(reverse("console-connection", args=[row.pk])).content.decode())


def press(user: Any, deed: str, row: Connection, /, **data: Any) -> Any:
    return browser(user).post(reverse(f"console-connection-{deed}", args=[row.pk]), data)


@pytest.mark.parametrize(("role", "status"), [("approver", 200), ("agent", 403), ("viewer", 403), ("stranger", 403)])
@pytest.mark.parametrize("name", ["console-connections", "console-connection", "console-connection-new"])
def test_page_is_for_deciders(
    row: Connection, name: str, role: str, status: int, request: pytest.FixtureRequest
) -> None:
    where = {"console-connection": [row.pk], "console-connection-new": ["test-link"]}.get(name, [])
    assert browser(request.getfixturevalue(role)).get(reverse(name, args=where)).status_code == status


@pytest.mark.parametrize("deed", DEEDS)
def test_deed_at_anothers_connection_is_not_found(row: Connection, other_owner: Any, deed: str) -> None:
    send = browser(other_owner).get if deed == "sign-in" else browser(other_owner).post
    assert send(reverse(f"console-connection-{deed}", args=[row.pk])).status_code == 404


@pytest.mark.parametrize("deed", DEEDS)
def test_deed_of_an_agent_is_refused(row: Connection, agent: Any, deed: str) -> None:
    send = browser(agent).get if deed == "sign-in" else browser(agent).post
    assert send(reverse(f"console-connection-{deed}", args=[row.pk])).status_code == 403


def test_unknown_skill_is_not_found(owner: Any) -> None:
    assert browser(owner).get(reverse("console-connection-new", args=["nobody"])).status_code == 404


def test_what_was_written_becomes_a_card(tenant: Any, approver: Any) -> None:
    make_skill(tenant)
    sent = {"name": "  Shop   mail ", "permission": ["Mail.Read"]}
    browser(approver).post(reverse("console-connection-new", args=["test-link"]), sent)
    with tenant_scope(tenant):
        found, card = Connection.objects.get(), Card.objects.get()
    assert found.name == "Shop mail"
    assert card.subject_id == found.pk
    assert card.payload["after"] == ["Mail.Read"]


@pytest.mark.parametrize("sent", [{"name": ""}, {"name": "x" * 121}, {"name": "Mail", "permission": ["Mail.Burn"]}])
def test_what_does_not_fit_is_said_and_kept(tenant: Any, owner: Any, sent: dict[str, Any]) -> None:
    make_skill(tenant)
    answer = browser(owner).post(reverse("console-connection-new", args=["test-link"]), sent)
    assert answer.status_code == 422
    assert f'value="{sent["name"]}"' in answer.content.decode()


def test_page_leads_to_the_card_that_waits(row: Connection, owner: Any) -> None:
    with tenant_scope(row.tenant_id):
        card = Card.objects.get(subject_id=row.pk)
    assert reverse("console-card", args=[card.pk]) in page_of(owner, row)


def test_code_to_enter_is_shown_and_the_page_reads_itself_anew(tenant: Any, row: Connection, owner: Any) -> None:
    asking(tenant, row, owner, DEVICE)
    page = page_of(owner, row)
    assert "WDJB-MJHT" in page
    assert 'hx-trigger="every 2s"' in page


def test_code_says_when_it_runs_out_and_what_to_do_about_trouble(tenant: Any, row: Connection, owner: Any) -> None:
    shown = (now() - timedelta(minutes=4)).isoformat()
    asking(tenant, row, owner, {**DEVICE, "shown_at": shown})
    page = page_of(owner, row)
    assert ">in 5 min</time>" in page
    assert "Having trouble" in page


def test_entered_code_is_told_to_the_script(tenant: Any, row: Connection, owner: Any) -> None:
    setup = asking(tenant, row, owner, DEVICE)
    assert [press(owner, "done", row, step_id=one).status_code for one in ("another", "one")] == [409, 302]
    with tenant_scope(tenant):
        assert [answer.step_id for answer in setup.answers.all()] == ["one"]


@pytest.mark.parametrize("late", ["the field", "the set-up"])
def test_field_that_was_open_for_too_long_is_shown_no_more_and_takes_nothing(
    tenant: Any, row: Connection, owner: Any, late: str
) -> None:
    setup = asking(tenant, row, owner, secret_step())
    past = now() - timedelta(seconds=1)
    with tenant_scope(tenant):
        if late == "the field":
            setup.pending.update(expires_at=past)
        else:
            SetupRun.objects.filter(pk=setup.pk).update(deadline=past)
        ref = setup.pending.get().pk
    page = page_of(owner, row)
    assert "data-secret" not in page
    assert "This request has expired" in page
    assert "every 2s" in page
    answer = browser(owner).post(f"/secrets/{ref}", {"value": "a-late-key"}, content_type="application/json")
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "secret_expired"
    with tenant_scope(tenant):
        assert not Credential.objects.exists()


def secret_step() -> dict[str, Any]:
    guidance = {"instructions": "Make a key in the settings.", "help_url": None}
    request = {"name": "value", "label": "Key", "input_hint": "", "guidance": guidance}
    return {"type": "secure_input", "request": request}


def test_page_with_a_field_for_a_secret_is_left_alone(tenant: Any, row: Connection, owner: Any) -> None:
    """Reloading would discard what a member is typing."""
    setup = asking(tenant, row, owner, secret_step())
    with tenant_scope(tenant):
        ref = str(setup.pending.get().pk)
    page = page_of(owner, row)
    assert f'data-secret="{ref}"' in page
    assert "every 2s" not in page


def test_going_to_the_service_binds_this_browser(tenant: Any, row: Connection, owner: Any) -> None:
    setup = asking(tenant, row, owner, REDIRECT)
    answer = browser(owner).get(reverse("console-connection-sign-in", args=[row.pk]))
    with tenant_scope(tenant):
        setup.refresh_from_db()
    assert answer.headers["Location"] == REDIRECT["auth_url"]
    assert len(setup.browser) == 64


def test_service_is_not_opened_where_nothing_asks_for_it(row: Connection, owner: Any) -> None:
    assert browser(owner).get(reverse("console-connection-sign-in", args=[row.pk])).status_code == 409


def test_cancelled_setup_is_over(tenant: Any, row: Connection, owner: Any) -> None:
    setup = asking(tenant, row, owner, DEVICE)
    press(owner, "cancel", row)
    with tenant_scope(tenant):
        setup.refresh_from_db()
    assert setup.state == SetupState.CANCELLED


def test_what_is_wrong_is_said_in_our_words(tenant: Any, row: Connection, owner: Any) -> None:
    setup = said_yes(tenant, row, owner)
    assert setup is not None
    said = {"failure_type": "token_revoked", "message": "<b>Call 0800 SCAM</b>"}
    with tenant_scope(tenant):
        SetupRun.objects.filter(pk=setup.pk).update(state=SetupState.FAILED, failure=said)
    standing(tenant, row, ConnectionStatus.FAILED, failure=said)
    page = page_of(owner, row)
    assert "access was revoked" in page
    assert "SCAM" not in page


def test_more_access_becomes_a_card(tenant: Any, row: Connection, owner: Any) -> None:
    said_yes(tenant, row, owner)
    standing(tenant, row, ConnectionStatus.ACTIVE, permissions_granted=["Mail.Read"])
    press(owner, "widen", row, permission=["Mail.Send"])
    with tenant_scope(tenant):
        card = Card.objects.get(kind="permission_escalation")
    assert card.payload["before"] == ["Mail.Read"]
    assert card.payload["after"] == ["Mail.Read", "Mail.Send"]


@pytest.mark.parametrize(
    ("deed", "before", "after"),
    [("pause", "active", "paused"), ("resume", "paused", "active"), ("remove", "active", "removed")],
)
def test_deed_changes_the_connection(
    tenant: Any, row: Connection, owner: Any, deed: str, before: str, after: str
) -> None:
    standing(tenant, row, ConnectionStatus(before))
    press(owner, deed, row)
    with tenant_scope(tenant):
        row.refresh_from_db()
    assert row.status == after


def test_deed_that_cannot_be_done_says_so(row: Connection, owner: Any) -> None:
    answer = press(owner, "pause", row)
    assert answer.status_code == 409
    assert "in the connection&#x27;s current state" in answer.content.decode()


@pytest.mark.parametrize("many", [1, 6])
def test_list_asks_as_often_for_one_as_for_many(
    tenant: Any, owner: Any, many: int, django_assert_max_num_queries: Any
) -> None:
    for _ in range(many):
        link(tenant)
    client = browser(owner)
    with django_assert_max_num_queries(30):
        assert client.get(reverse("console-connections")).content.decode().count("Shop mail") == many


@pytest.mark.parametrize("said", [None, "x", [1], [{"name": "../x", "title": "T"}], [{"title": "T"}]])
def test_settings_that_cannot_be_read_are_left_out(said: Any) -> None:
    manifest = SkillManifest.model_validate({**FRONT, "metadata": {"settings": said}})
    assert forms.settings_of(manifest) == []


def test_unknown_connection_is_not_found(owner: Any) -> None:
    assert browser(owner).get(reverse("console-connection", args=[uuid4()])).status_code == 404
