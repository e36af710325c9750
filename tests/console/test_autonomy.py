"""Automation settings: who changes them, who opts in, and the webhooks."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.urls import reverse

from apps.autonomy import queries, services
from apps.autonomy.models import Outbox, Webhook
from apps.autonomy.services.webhooks import event_types, secret_mark, signing_keys
from apps.events.models import Event
from apps.events.services import emit
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.console.runs import post, text
from tests.factories.autonomy import House, make_house
from tests.factories.console import browser

URL = "https://hooks.example.com/silas"
SETTINGS = {
    "enabled": "on",
    "max_concurrent": "2",
    "egress": "anonymous",
    "idle_seconds": "60",
    "retry_base_seconds": "1",
    "retry_most_seconds": "60",
    "cost_usd": "0.1",
}


@pytest.fixture
def house(tenant: Any) -> House:
    return make_house(tenant)


def hooks(house: House) -> list[Webhook]:
    with tenant_scope(house.tenant):
        return list(Webhook.objects.all())


def secret_in(answer: Any) -> str:
    return str(answer.content.decode().partition('<output class="mono">')[2].partition("</output>")[0])


@pytest.mark.parametrize("role", ["approver", "agent", "viewer", "stranger"])
def test_company_and_webhooks_are_changed_by_owners_only(
    house: House, role: str, request: pytest.FixtureRequest
) -> None:
    user = request.getfixturevalue(role)
    answers = [
        post(user, "console-autonomy", **SETTINGS),
        post(user, "console-webhook-add", url=URL),
        post(user, "console-webhook-delete", uuid4()),
        post(user, "console-webhook-test", uuid4()),
        post(user, "console-webhook-rotate", uuid4()),
        post(user, "console-webhook-replay", uuid4()),
    ]
    assert {answer.status_code for answer in answers} == {403}
    assert hooks(house) == []


def test_settings_hold_without_a_restart(house: House) -> None:
    post(house.owner, "console-autonomy", **SETTINGS)
    row = house.do(queries.autonomy_settings)
    assert row.max_concurrent == 2
    assert row.limits == {"cost_usd": "0.1"}


@pytest.mark.parametrize("wrong", [{"max_concurrent": "-1"}, {"cost_usd": "NaN"}, {"idle_seconds": "9999999"}])
def test_absurd_settings_change_nothing(house: House, wrong: dict[str, str]) -> None:
    answer = post(house.owner, "console-autonomy", **{**SETTINGS, **wrong})
    assert answer.status_code == 422
    assert house.do(queries.autonomy_settings).max_concurrent == 3


def test_approval_of_a_member_is_their_own(house: House, approver: Any) -> None:
    post(approver, "console-autonomy-opt", allowed="1")
    first = (house.do(queries.has_opted_in, approver.pk), house.do(queries.has_opted_in, house.owner.pk))
    post(approver, "console-autonomy-opt", allowed="0")
    assert first == (True, True)
    assert house.do(queries.has_opted_in, approver.pk) is False


def test_agent_has_no_tasks_to_allow(house: House, agent: Any) -> None:
    assert post(agent, "console-autonomy-opt", allowed="1").status_code == 403


def test_secret_is_shown_once(house: House) -> None:
    answer = post(house.owner, "console-webhook-add", url=URL, events=["task.failed"])
    secret = secret_in(answer)
    assert len(secret) > 30
    assert secret not in text(house.owner, "console-autonomy")


def test_page_with_a_secret_that_is_sent_again_shows_none_and_makes_no_other(house: House) -> None:
    """As a browser does when its answer is reloaded."""
    sent = {"url": URL, "once": str(uuid4())}
    post(house.owner, "console-webhook-add", **sent)
    again = post(house.owner, "console-webhook-add", **sent)
    assert again.status_code == 302
    assert again["Location"] == reverse("console-autonomy")
    assert len(hooks(house)) == 1


def test_address_of_a_page_with_a_secret_leads_to_the_settings(house: House) -> None:
    answer = browser(house.owner).get(reverse("console-webhook-add"))
    assert answer.status_code == 302
    assert answer["Location"] == reverse("console-autonomy")


def test_mark_of_one_company_says_nothing_in_another(house: House, other_tenant: Any) -> None:
    other, sent = make_house(other_tenant), {"url": URL, "once": str(uuid4())}
    post(other.owner, "console-webhook-add", **sent)
    assert len(secret_in(post(house.owner, "console-webhook-add", **sent))) > 30


def test_mark_that_is_none_stores_nothing(house: House) -> None:
    answer = post(house.owner, "console-webhook-add", url=URL, once="again")
    assert answer.status_code == 422
    assert hooks(house) == []


@pytest.mark.parametrize("url", ["", "http://hooks.example.com/", "https://169.254.169.254/", "https://[::1"])
def test_address_inside_or_odd_is_refused(house: House, settings: Any, url: str) -> None:
    settings.WEBHOOKS_PRIVATE = False
    answer = post(house.owner, "console-webhook-add", url=url)
    assert answer.status_code == 422
    assert hooks(house) == []


def test_refused_address_loses_nothing_that_was_chosen(house: House) -> None:
    answer = post(house.owner, "console-webhook-add", url="https:/typo", events=["task.failed"])
    shown = answer.content.decode()
    ticked = [event for event in event_types() if f'value="{event}" checked' in shown]
    assert 'value="https:/typo"' in shown
    assert ticked == ["task.failed"]


def test_unknown_event_is_refused(house: House) -> None:
    answer = post(house.owner, "console-webhook-add", url=URL, events=["task.everything"])
    assert answer.status_code == 422
    assert hooks(house) == []


def test_webhook_of_another_tenant_is_not_found(house: House, other_tenant: Any) -> None:
    other = make_house(other_tenant)
    theirs, _ = other.do(services.save_webhook, URL, user=other.owner)
    answer = post(house.owner, "console-webhook-delete", theirs.pk)
    assert answer.status_code == 404
    assert len(hooks(other)) == 1
    assert URL not in text(house.owner, "console-autonomy")


def test_test_event_of_a_webhook_is_sent(house: House) -> None:
    made, _ = house.do(services.save_webhook, URL, user=house.owner, events=["task.failed"])
    assert post(house.owner, "console-webhook-test", made.pk).status_code == 302
    assert "webhook.test" in text(house.owner, "console-autonomy")


def test_secret_is_rotated_once_and_the_one_before_still_signs(house: House) -> None:
    made, before = house.do(services.save_webhook, URL, user=house.owner)
    mark = house.do(secret_mark, made)
    shown = post(house.owner, "console-webhook-rotate", made.pk, mark=mark, overlap="24")
    secret = secret_in(shown)
    assert secret.startswith("whsec_")
    assert secret != before
    assert "signed with the previous secret as well" in shown.content.decode()
    (row,) = hooks(house)
    assert len(house.do(signing_keys, row)) == 2
    assert secret not in text(house.owner, "console-autonomy")
    again = post(house.owner, "console-webhook-rotate", made.pk, mark=mark, overlap="0")
    assert again.status_code == 302
    assert bytes(hooks(house)[0].sealed_secret) == bytes(row.sealed_secret)


def test_secret_that_ends_at_once_signs_no_more(house: House) -> None:
    made, _ = house.do(services.save_webhook, URL, user=house.owner)
    mark = house.do(secret_mark, made)
    shown = post(house.owner, "console-webhook-rotate", made.pk, mark=mark, overlap="0").content.decode()
    assert "The previous secret no longer signs requests." in shown
    assert len(house.do(signing_keys, hooks(house)[0])) == 1


def test_events_of_the_last_hours_are_sent_again(house: House) -> None:
    made, _ = house.do(services.save_webhook, URL, user=house.owner, events=["card.created"])
    with tenant_scope(house.tenant):
        for _each in range(3):
            emit("card.created", card=str(uuid4()), kind="gate", state="open", risk="low")
    with tenant_scope(house.tenant):
        Event.objects.filter(seq=Event.objects.order_by("seq").first().seq).update(
            created_at=now() - timedelta(hours=2)
        )
        Outbox.objects.all().delete()
    answer = post(house.owner, "console-webhook-replay", made.pk, since="1")
    with tenant_scope(house.tenant):
        assert Outbox.objects.count() == 2
    page = browser(house.owner).get(answer.url.partition("#")[0]).content.decode()
    assert "2 events are being sent again." in page


def test_another_tenants_webhook_is_not_rotated_or_replayed(house: House, other_tenant: Any) -> None:
    other = make_house(other_tenant)
    theirs, _ = other.do(services.save_webhook, URL, user=other.owner)
    for name in ("console-webhook-rotate", "console-webhook-replay"):
        assert post(house.owner, name, theirs.pk).status_code == 404
    assert bytes(hooks(other)[0].sealed_secret) == bytes(theirs.sealed_secret)


def test_deleted_webhook_is_gone(house: House) -> None:
    made, _ = house.do(services.save_webhook, URL, user=house.owner)
    post(house.owner, "console-webhook-delete", made.pk)
    assert hooks(house) == []


def test_letters_are_listed_with_how_they_went(house: House) -> None:
    house.do(services.save_webhook, URL, user=house.owner)
    house.run_now(house.task())
    with tenant_scope(house.tenant):
        Outbox.objects.filter(channel="webhook").update(state="given_up", error_code="http_500")
    shown = text(house.owner, "console-autonomy")
    assert "Could not be sent" in shown
    assert "http 500" in shown
    assert "hooks.example.com" in shown


def test_setting_without_a_login_leads_to_it(database: None) -> None:
    assert browser().get(reverse("console-autonomy")).status_code == 302
