"""A login or a card that expires during a decision: nothing is lost, and the member is told."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse

from apps.approvals.models import Card
from apps.approvals.queries import face_hash
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.console import HTMX, browser, make_card

ORIGIN = "http://testserver"


@pytest.fixture
def card(tenant: Any) -> Card:
    return make_card(tenant)


def _page_of(card: Card) -> str:
    return reverse("console-card", args=[card.pk])


def _pressed(card: Card, **headers: str) -> Any:
    """A request after the login has expired."""
    return Client().post(reverse("console-decide", args=[card.pk]), {"choice": "approve"}, **headers)


def _live(card: Card) -> Any:
    return _pressed(card, **HTMX, HTTP_HX_CURRENT_URL=f"{ORIGIN}{_page_of(card)}")["HX-Redirect"]


def _run_out(card: Card) -> None:
    past = now() - timedelta(hours=1)
    with tenant_scope(card.tenant_id):
        Card.objects.filter(pk=card.pk).update(created_at=past - timedelta(hours=1), expires_at=past)


def test_press_without_login_leads_back_to_its_card(card: Card) -> None:
    assert parse_qs(urlsplit(_live(card)).query)["next"] == [_page_of(card)]


def test_press_without_login_leaves_the_card_open(card: Card) -> None:
    _live(card)
    with tenant_scope(card.tenant_id):
        assert Card.objects.get(pk=card.pk).is_open


def test_login_says_that_the_press_was_not_taken(card: Card) -> None:
    assert "Your session expired before your change was saved" in Client().get(_live(card)).content.decode()


def test_login_brings_one_back_to_the_card(card: Card, owner: Any) -> None:
    client = Client(REMOTE_ADDR=f"test-{uuid4().hex}")
    given = {"username": owner.email, "password": "a-long-password", "next": _page_of(card)}
    assert "Change the address" in client.post(reverse("console-login"), given, follow=True).content.decode()


def test_press_without_scripts_leads_back_to_its_page(card: Card) -> None:
    address = _pressed(card, HTTP_REFERER=f"{ORIGIN}{_page_of(card)}")["Location"]
    assert parse_qs(urlsplit(address).query) == {"next": [_page_of(card)], "unanswered": ["1"]}


def test_press_from_another_site_leads_nowhere_of_theirs(card: Card) -> None:
    assert "evil" not in _pressed(card, HTTP_REFERER="https://evil.test/console/")["Location"]


def test_look_without_login_was_no_press(card: Card) -> None:
    response = Client().get(reverse("console-rail"), **HTMX, HTTP_HX_CURRENT_URL=f"{ORIGIN}{_page_of(card)}")
    assert response["HX-Redirect"] == f"{reverse('console-login')}?next={_page_of(card)}"


def test_card_that_ran_out_while_somebody_looked_says_so(card: Card, owner: Any) -> None:
    _run_out(card)
    page = browser(owner).get(reverse("console-card-news", args=[card.pk]), **HTMX).content.decode()
    assert "<b>Expired</b>" in page
    assert 'name="choice"' not in page


def test_same_press_twice_is_taken_once(card: Card, owner: Any) -> None:
    client, address = browser(owner), reverse("console-decide", args=[card.pk])
    answers = [client.post(address, {"choice": "approve", "face": face_hash(card)}, **HTMX) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 409]


def test_second_of_the_same_presses_says_what_was_decided(card: Card, owner: Any) -> None:
    client, address = browser(owner), reverse("console-decide", args=[card.pk])
    page = [client.post(address, {"choice": "approve", "face": face_hash(card)}, **HTMX) for _ in range(2)][
        1
    ].content.decode()
    assert f"<b>“Change the address”</b> by {owner.display_name}" in page
