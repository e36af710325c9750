"""Your account → Approval keys: adding, naming and removing passkeys, replacing the signing key, and being asked."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.urls import reverse

from apps.approvals.enums import CardStatus, Risk
from apps.approvals.models import ApproverKey, Card, Passkey
from apps.approvals.queries import face_hash
from kernel.tenancy import tenant_scope
from tests.factories.approvals import make_plan, make_token
from tests.factories.console import browser, make_card
from tests.factories.passkeys import SoftPasskey

PASSWORD = "a-long-password"
HOST = "localhost:8420"


def post(client: Any, address: str, *args: Any, **data: str) -> Any:
    return client.post(reverse(address, args=args), data, headers={"host": HOST})


def add(user: Any, device: SoftPasskey, name: str = "Laptop") -> Any:
    client = browser(user)
    options = post(client, "console-passkey-begin", password=PASSWORD).json()["options"]
    post(client, "console-passkey-finish", name=name, credential=device.create(options))
    return client


def passkeys(tenant: Any) -> list[Passkey]:
    with tenant_scope(tenant):
        return list(Passkey.objects.filter(removed_at=None))


@pytest.fixture(autouse=True)
def _localhost(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["localhost", "testserver", "127.0.0.1"]


def test_passkey_is_added_with_the_password(tenant: Any, owner: Any) -> None:
    add(owner, SoftPasskey())
    assert [one.name for one in passkeys(tenant)] == ["Laptop"]


def test_added_passkey_is_listed(owner: Any) -> None:
    page = add(owner, SoftPasskey()).get(reverse("console-passkeys"), headers={"host": HOST}).content.decode()
    assert "<b>Laptop</b>" in page


def test_page_at_an_address_of_numbers_says_where_to_go(owner: Any) -> None:
    page = browser(owner).get(reverse("console-passkeys"), headers={"host": "127.0.0.1:8420"}).content.decode()
    assert "be added at 127.0.0.1" in page
    assert 'id="add-passkey"' not in page


def test_passkey_of_a_colleague_is_not_listed(owner: Any, approver: Any) -> None:
    add(approver, SoftPasskey())
    assert "<b>Laptop</b>" not in browser(owner).get(reverse("console-passkeys")).content.decode()


def test_beginning_without_the_password_is_refused(owner: Any) -> None:
    response = post(browser(owner), "console-passkey-begin", password="wrong")
    assert response.status_code == 403
    assert response.json()["error"]["code"] == "wrong_password"


def test_beginning_too_often_with_a_wrong_password_is_refused(owner: Any) -> None:
    client = browser(owner)
    codes = [post(client, "console-passkey-begin", password="wrong").status_code for _ in range(6)]
    assert codes[-1] == 429


def test_beginning_at_an_address_of_numbers_says_where_to_go(owner: Any) -> None:
    response = browser(owner).post(
        reverse("console-passkey-begin"), {"password": PASSWORD}, headers={"host": "127.0.0.1:8420"}
    )
    assert response.json()["error"]["code"] == "passkey_needs_a_name"


def test_removing_without_the_password_changes_nothing(tenant: Any, owner: Any) -> None:
    client = add(owner, SoftPasskey())
    post(client, "console-passkey-remove", passkeys(tenant)[0].pk, password="wrong")
    assert len(passkeys(tenant)) == 1


def test_passkey_is_removed_with_the_password(tenant: Any, owner: Any) -> None:
    client = add(owner, SoftPasskey())
    post(client, "console-passkey-remove", passkeys(tenant)[0].pk, password=PASSWORD)
    assert passkeys(tenant) == []


def test_passkey_is_renamed(tenant: Any, owner: Any) -> None:
    client = add(owner, SoftPasskey())
    post(client, "console-passkey-rename", passkeys(tenant)[0].pk, name="Desk")
    assert passkeys(tenant)[0].name == "Desk"


def test_name_of_a_passkey_is_text_and_not_markup(owner: Any) -> None:
    page = add(owner, SoftPasskey(), name="<script>x</script>").get(reverse("console-passkeys")).content.decode()
    assert "<script>x" not in page


def test_signing_key_is_replaced(tenant: Any, owner: Any) -> None:
    before = make_token(tenant, owner, make_plan()).key_id
    post(browser(owner), "console-key-replace", password=PASSWORD)
    with tenant_scope(tenant):
        assert ApproverKey.objects.get(user=owner, retired_at=None).key_id != before


# --- deciding


def status(tenant: Any, card: Card) -> str:
    with tenant_scope(tenant):
        return str(Card.objects.get(pk=card.pk).status)


def test_grave_card_is_approved_with_the_passkey(tenant: Any, owner: Any) -> None:
    device, card = SoftPasskey(), make_card(tenant, risk=Risk.HIGH)
    client = add(owner, device)
    options = post(client, "console-step-up", card.pk, face=face_hash(card)).json()["options"]
    post(
        client,
        "console-decide",
        card.pk,
        choice="approve",
        face=face_hash(card),
        slid="100",
        step_up=device.get(options),
    )
    assert status(tenant, card) == CardStatus.DECIDED


def test_grave_card_without_the_passkey_stays_open(tenant: Any, owner: Any) -> None:
    client, card = add(owner, SoftPasskey()), make_card(tenant, risk=Risk.HIGH)
    response = post(client, "console-decide", card.pk, choice="approve", face=face_hash(card), slid="100")
    assert response.status_code == 403
    assert status(tenant, card) == CardStatus.OPEN


def test_wrong_answer_of_the_passkey_shows_the_card_again(tenant: Any, owner: Any) -> None:
    client, card = add(owner, SoftPasskey()), make_card(tenant, risk=Risk.HIGH)
    response = post(
        client,
        "console-decide",
        card.pk,
        choice="approve",
        face=face_hash(card),
        slid="100",
        step_up=json.dumps({"a": 1}),
    )
    assert response.status_code == 409
    assert status(tenant, card) == CardStatus.OPEN
    assert "We couldn&#x27;t read the passkey&#x27;s response." in response.content.decode()


def test_wrong_answer_of_the_passkey_stays_in_the_log(tenant: Any, owner: Any) -> None:
    client, card = add(owner, SoftPasskey()), make_card(tenant, risk=Risk.HIGH)
    post(
        client,
        "console-decide",
        card.pk,
        choice="approve",
        face=face_hash(card),
        slid="100",
        step_up=json.dumps({"a": 1}),
    )
    story = client.get(reverse("console-activity"), headers={"host": HOST}).content.decode()
    assert f"of {owner.display_name}, at {card.intent}: it was not valid" in story


def test_passkey_that_was_not_asked_for_is_refused_in_json(tenant: Any, owner: Any) -> None:
    response = post(browser(owner), "console-passkey-finish", name="Mine", credential=json.dumps({"response": {}}))
    assert response.status_code == 409
    assert response.json()["error"]["code"] == "passkey_refused"
    assert passkeys(tenant) == []


def test_card_of_a_person_without_passkey_asks_for_none(tenant: Any, owner: Any) -> None:
    card = make_card(tenant, risk=Risk.HIGH)
    assert post(browser(owner), "console-step-up", card.pk, face=face_hash(card)).json() == {"options": None}


def test_card_of_another_tenant_is_not_found(tenant: Any, other_tenant: Any, owner: Any) -> None:
    card = make_card(other_tenant, risk=Risk.HIGH)
    assert post(browser(owner), "console-step-up", card.pk, face=face_hash(card)).json()["error"]["code"] == "not_found"
