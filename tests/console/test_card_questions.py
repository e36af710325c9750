"""Review: asking the customer before a card is decided, and the cards that wait for the answer."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.urls import reverse

from apps.approvals.cards.services import answer_card
from apps.approvals.enums import Risk
from apps.approvals.models import Card, CardQuestion
from apps.approvals.queries import face_hash
from apps.inbox.card_questions import ask_customer
from apps.sessions.models import ChatSession
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.console import HTMX, browser, make_card
from tests.factories.sessions import make_session, say

REVIEW = reverse("console-review")
PARKED = f"{REVIEW}?show=parked"


@pytest.fixture
def session(deployment: Any) -> ChatSession:
    made = make_session(deployment)
    say(made, "Please change my address.")
    return made


@pytest.fixture
def card(tenant: Any, session: ChatSession) -> Card:
    return make_card(tenant, intent="Change the address", risk=Risk.MEDIUM, session_id=session.pk)


def at(card: Card, name: str) -> str:
    return reverse(name, args=[card.pk])


def ask(card: Card, by: Any, text: str = "Flat 3 or 4?") -> None:
    with tenant_scope(card.tenant):
        ask_customer(card.pk, by, text)


def shown(user: Any, address: str) -> str:
    return " ".join(browser(user).get(address).content.decode().split())


def test_key_q_opens_the_form_and_the_question_parks_the_card(tenant: Any, card: Card, approver: Any) -> None:
    later = make_card(tenant, intent="Another", risk=Risk.MEDIUM)
    assert f'href="{at(card, "console-card-question")}" hx-get' in shown(approver, at(card, "console-card"))
    assert 'data-key="q"' in shown(approver, at(card, "console-card"))
    form = shown(approver, at(card, "console-card-question"))
    assert f'action="{at(card, "console-card-ask")}"' in form
    assert 'maxlength="4000"' in form
    after = browser(approver).post(at(card, "console-card-ask"), {"text": "Flat 3 or 4?"}, **HTMX)
    assert after.context["card"].pk == later.pk
    assert "Question sent. Waiting for the customer:" in after.content.decode()
    assert [other.intent for other in after.context["queue"]] == ["Another"]


def test_without_scripts_the_card_is_shown_again(card: Card, approver: Any) -> None:
    sent = browser(approver).post(at(card, "console-card-ask"), {"text": "Flat 3 or 4?"})
    assert sent["Location"] == at(card, "console-card")


def test_card_that_waits_says_for_what_and_until_when(card: Card, approver: Any, viewer: Any) -> None:
    ask(card, approver, "Flat <3> or 4?")
    page = shown(viewer, at(card, "console-card"))
    assert f"{approver.display_name} asked the customer" in page
    assert "Flat &lt;3&gt; or 4?" in page
    assert "<b>Waiting for the customer</b>" in page
    assert 'data-key="q"' not in shown(approver, at(card, "console-card"))


def test_decided_card_waits_for_nobody(card: Card, approver: Any) -> None:
    ask(card, approver)
    with tenant_scope(card.tenant):
        answer_card(card.pk, user=approver, choice="approve", face=face_hash(card))
    page = shown(approver, at(card, "console-card"))
    assert "Flat 3 or 4?" in page
    assert "Waiting for the customer</b>" not in page
    assert "You can decide without the answer" not in page


def test_answer_is_shown_as_unverified_text(card: Card, session: ChatSession, approver: Any) -> None:
    ask(card, approver)
    say(session, "<script>alert(1)</script> number 4")
    page = shown(approver, at(card, "console-card"))
    assert "Not verified:" in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; number 4" in page
    assert "<script>alert(1)" not in page
    assert f"{reverse('console-conversation', args=[session.pk])}#line-" in page
    assert 'data-key="q"' in page


def test_answer_comes_to_a_page_that_is_open(card: Card, session: ChatSession, approver: Any) -> None:
    ask(card, approver)
    say(session, "Number 4")
    news = browser(approver).get(at(card, "console-card-news"), **HTMX).content.decode()
    assert 'id="questions" hx-swap-oob="true"' in news
    assert "Number 4" in news
    assert 'id="parts"' in news


def test_silence_is_said_when_the_time_is_up(card: Card, approver: Any) -> None:
    ask(card, approver)
    with time_machine.travel(now() + timedelta(days=1, seconds=1)):
        assert "The customer has not answered." in shown(approver, at(card, "console-card"))


def test_queue_and_its_waiting_part(tenant: Any, card: Card, approver: Any) -> None:
    other = make_card(tenant, intent="Another")
    assert "Waiting for the customer" not in shown(approver, REVIEW)
    ask(card, approver)
    queue = browser(approver).get(REVIEW)
    assert [each.pk for each in queue.context["queue"]] == [other.pk]
    assert queue.context["waiting"] == 1
    assert 'Waiting for the customer <span class="num">1</span>' in queue.content.decode()
    parked = browser(approver).get(PARKED)
    assert parked.context["card"].pk == card.pk
    assert [each.pk for each in parked.context["queue"]] == [card.pk]
    assert parked["HX-Replace-Url"] == f"{at(card, 'console-card')}?show=parked"
    assert "1 waiting for the customer" in parked.content.decode()
    assert 'name="show" value="parked"' in parked.content.decode()


def test_waiting_part_is_filtered(card: Card, approver: Any) -> None:
    ask(card, approver)
    assert "No cards match these filters" in shown(approver, f"{PARKED}&risk=high")
    assert browser(approver).get(f"{PARKED}&risk=medium").context["card"].pk == card.pk


def test_empty_waiting_part_says_what_it_is_for(card: Card, approver: Any) -> None:
    assert "No cards waiting for the customer" in shown(approver, PARKED)


def test_form_is_not_shown_where_nobody_can_be_asked(tenant: Any, card: Card, approver: Any, viewer: Any) -> None:
    lonely = make_card(tenant, risk=Risk.MEDIUM)
    assert 'data-key="q"' not in shown(approver, at(lonely, "console-card"))
    assert 'name="text"' not in shown(approver, at(lonely, "console-card-question"))
    assert 'data-key="q"' not in shown(viewer, at(card, "console-card"))
    assert 'name="text"' not in shown(viewer, at(card, "console-card-question"))


def test_second_question_is_refused_with_the_card_as_it_is(card: Card, approver: Any, owner: Any) -> None:
    ask(card, approver)
    refused = browser(owner).post(at(card, "console-card-ask"), {"text": "And the floor?"}, **HTMX)
    assert refused.status_code == 409
    assert "The customer was already asked and has not answered yet." in refused.content.decode()
    assert f"{approver.display_name} asked the customer" in refused.content.decode()


def test_empty_question_is_refused(card: Card, approver: Any) -> None:
    assert browser(approver).post(at(card, "console-card-ask"), {"text": " "}, **HTMX).status_code == 400
    with tenant_scope(card.tenant):
        assert not CardQuestion.objects.exists()


def test_saved_view_keeps_the_waiting_part(card: Card, approver: Any) -> None:
    from apps.console.pages.review.filters import saved_parameters

    assert saved_parameters({"show": "parked", "risk": "high"}) == {"show": "parked", "risk": "high"}
    with pytest.raises(ValueError):
        saved_parameters({"show": "everything"})
