"""Webhooks of all events: signed as Standard Webhooks says, sent again with the same id, and no way to more rights."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any
from uuid import uuid4

import pytest

from apps.autonomy.models import Outbox
from apps.autonomy.services import save_webhook
from apps.autonomy.services.outbox import WEBHOOK_ATTEMPTS, mark_failed
from apps.autonomy.webhook_delivery import signature
from apps.bus.enums import Queue
from apps.events.services import emit
from apps.tenants.enums import KeyScope
from apps.tenants.services import create_api_key
from kernel.tenancy import tenant_scope
from tests.autonomy.test_api import Api
from tests.autonomy.test_routes import outbox, receiver
from tests.factories.api import code
from tests.factories.autonomy import House, make_house
from tests.factories.bus import let_leases_run_out, let_waits_pass
from tests.factories.sessions import make_session, say

HOOKS = "/api/v1/webhooks"
URL = "https://hooks.example.com/x"


@pytest.fixture
def house(tenant: Any) -> House:
    return make_house(tenant)


def verified(secret: str, headers: dict[str, str], body: bytes) -> dict[str, Any]:
    """The content, when one of its signatures is this secret's."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    ours = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert ours in headers["webhook-signature"].split(" ")
    content: dict[str, Any] = json.loads(body)
    assert content["id"] == headers["webhook-id"]
    return content


def key(house: House, *scopes: KeyScope) -> Api:
    return Api(str(house.do(lambda: create_api_key("Test", scopes=scopes)).key))


def card(house: House) -> None:
    with tenant_scope(house.tenant):
        emit("card.created", card=str(uuid4()), kind="gate", state="open", risk="low")


def test_published_vector_of_standard_webhooks_is_signed_as_published() -> None:
    found = signature(
        base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "1614265330",
        b'{"test": 2432232314}',
    )
    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_message_is_posted_with_its_words_and_again_on_replay_and_with_both_secrets(house: House) -> None:
    api = key(house)
    with receiver(200) as (url, got):
        made = api("post", HOOKS, {"url": url, "events": ["message.created"]}).json()
        session = make_session(house.deployment)
        say(session, "Where is my order?")
        house.work(Queue.TRUSTED)
        first = verified(made["secret"], *got[0])
        rotated = api("post", f"{HOOKS}/{made['id']}/rotate-secret", {"overlap_hours": 1}).json()
        assert api("post", f"{HOOKS}/{made['id']}/replay", {"after": 0, "until": 99}).json() == {"events": 1}
        assert api("post", f"{HOOKS}/{made['id']}/test").status_code == 202
        house.work(Queue.TRUSTED)
        house.work(Queue.TRUSTED)
    assert first["type"] == "message.created"
    assert first["data"]["text"] == "Where is my order?"
    contents = [verified(made["secret"], *each) for each in got[1:]]
    assert contents == [verified(rotated["secret"], *each) for each in got[1:]]
    again = next(each for each in contents if each["type"] == "message.created")
    assert again == first
    assert {each["type"] for each in contents} == {"message.created", "webhook.test"}
    with tenant_scope(house.tenant):
        assert "Where is my order?" not in str(list(Outbox.objects.values_list("body", flat=True)))


def test_delivery_whose_sender_died_comes_with_the_same_id(house: House) -> None:
    from tests.factories.bus import lease_any

    with receiver(500, 200) as (url, got):
        house.do(save_webhook, url, user=house.owner, events=["card.created"])
        card(house)
        house.do(lease_any, Queue.TRUSTED, consumer="killed")
        house.work(Queue.TRUSTED)
        assert got == []
        let_leases_run_out(house.tenant)
        house.work(Queue.TRUSTED)
        let_waits_pass(house.tenant)
        house.work(Queue.TRUSTED)
    assert len(got) == 2
    assert got[0][0]["webhook-id"] == got[1][0]["webhook-id"]


def test_failures_are_tried_again_for_about_a_day_and_then_given_up_with_the_reason(house: House) -> None:
    house.do(save_webhook, URL, user=house.owner, events=["card.created"])
    card(house)
    waited, attempts = 0, 0
    with tenant_scope(house.tenant):
        while (seconds := mark_failed(Outbox.objects.get(channel="webhook"), "http_500")) is not None:
            waited, attempts = waited + seconds, attempts + 1
    (row,) = [row for row in outbox(house) if row.webhook_id]
    assert attempts == WEBHOOK_ATTEMPTS - 1
    assert 16 * 3600 < waited <= 24 * 3600
    assert row.state == "given_up"
    assert row.error_code == "http_500"


def test_redirect_into_the_house_is_not_followed(house: House) -> None:
    with receiver(302) as (url, got):
        house.do(save_webhook, url, user=house.owner, events=["card.created"])
        card(house)
        house.work(Queue.TRUSTED)
    assert len(got) == 1
    (row,) = outbox(house)
    assert row.state == "waiting"
    assert row.error_code == "http_302"


@pytest.mark.parametrize("events", [["message.created"], [], ["card.created", "rating.created"]])
def test_limited_key_subscribes_to_nothing_that_it_may_not_read(house: House, events: list[str]) -> None:
    limited = key(house, KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE, KeyScope.CARDS_READ)
    assert code(limited("post", HOOKS, {"url": URL, "events": events})) == (403, "forbidden_scope")
    assert limited("post", HOOKS, {"url": URL, "events": ["card.created", "task.failed"]}).status_code == 201


@pytest.mark.parametrize(("path", "body"), [("rotate-secret", {}), ("test", {}), ("replay", {"after": 0, "until": 1})])
def test_webhook_of_another_company_is_not_found(
    house: House, other_tenant: Any, path: str, body: dict[str, int]
) -> None:
    other = make_house(other_tenant)
    theirs, _ = other.do(save_webhook, URL, user=other.owner)
    assert key(house)("post", f"{HOOKS}/{theirs.pk}/{path}", body).status_code == 404
    assert key(house, KeyScope.CARDS_READ)("post", f"{HOOKS}/{theirs.pk}/{path}", body).status_code == 403
    card(house)
    assert outbox(other) == []
