"""Review: the filter and the order of the queue, kept in the address."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.urls import reverse

from apps.approvals.cards.lifecycle import assign_card
from apps.approvals.enums import CardKind, Risk
from apps.approvals.models import Card
from apps.approvals.queries import face_hash
from apps.console.pages.review.filters import QueueFilter, Sort, filter_from
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.console import HTMX, browser, make_card
from tests.factories.tenants import make_deployment

REVIEW = reverse("console-review")


def _queue(user: Any, query: str) -> list[str]:
    page = browser(user).get(f"{REVIEW}?{query}")
    assert page.status_code == 200
    return [card.intent for card in page.context["queue"]]


def _current(query: str) -> dict[str, str]:
    """What HTMX sends from a review page with this filter."""
    return {**HTMX, "HTTP_HX_CURRENT_URL": f"http://testserver{REVIEW}?{query}"}


@pytest.fixture
def cards(tenant: Any, owner: Any) -> list[Card]:
    """Three cards: low, medium, high; the high one, assigned to the owner, expires last and is the oldest."""
    high = make_card(tenant, risk=Risk.HIGH, intent="High", seconds=3 * 86_400)
    low = make_card(tenant, intent="Low", seconds=600)
    medium = make_card(tenant, risk=Risk.MEDIUM, intent="Medium", seconds=7200)
    with tenant_scope(tenant):
        assign_card(high.pk, to=owner, by=owner)
    return [low, medium, high]


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("", ["Low", "Medium", "High"]),
        ("risk=high", ["High"]),
        ("kind=gate", ["Low"]),
        ("kind=plan&sort=newest", ["Medium", "High"]),
        ("due=hour", ["Low"]),
        ("due=day", ["Low", "Medium"]),
        ("assigned=me", ["High"]),
        ("assigned=nobody", ["Low", "Medium"]),
        ("sort=risk", ["High", "Medium", "Low"]),
        ("sort=oldest", ["High", "Low", "Medium"]),
        ("sort=newest", ["Medium", "Low", "High"]),
        ("risk=low&due=day&kind=plan", []),
    ],
)
def test_queue_is_filtered_and_sorted(owner: Any, cards: list[Card], query: str, wanted: list[str]) -> None:
    assert _queue(owner, query) == wanted


@pytest.mark.parametrize(
    "query", ["risk=grave", "kind=x", "chatbot=1", "due=%00", "assigned=all", "sort=intent", "x=1"]
)
def test_values_that_mean_nothing_are_ignored(owner: Any, cards: list[Card], query: str) -> None:
    assert _queue(owner, query) == ["Low", "Medium", "High"]


def test_queue_of_one_chatbot(tenant: Any, other_tenant: Any, owner: Any, cards: list[Card]) -> None:
    deployment = make_deployment(tenant, title="Harbour")
    foreign = make_deployment(other_tenant, title="Foreign")
    make_card(tenant, intent="Mine", deployment_id=deployment.pk)
    assert _queue(owner, f"chatbot={deployment.pk}") == ["Mine"]
    assert _queue(owner, f"chatbot={uuid4()}") == []
    assert _queue(owner, f"chatbot={foreign.pk}") == []
    assert "Foreign" not in browser(owner).get(f"{REVIEW}?chatbot={foreign.pk}").content.decode()


def test_filter_stays_in_the_address_of_every_card(owner: Any, cards: list[Card]) -> None:
    page = browser(owner).get(f"{REVIEW}?risk=low&sort=newest&due=")
    assert page["HX-Replace-Url"] == reverse("console-card", args=[cards[0].pk]) + "?risk=low&sort=newest"
    hrefs = re.findall(r'href="([^"]+)" data-row', page.content.decode())
    assert hrefs == [reverse("console-card", args=[cards[0].pk]) + "?risk=low&amp;sort=newest"]


def test_news_and_decisions_keep_the_filter_of_the_page_that_sent_them(owner: Any, cards: list[Card]) -> None:
    low, _, high = cards
    news = browser(owner).get(reverse("console-card-news", args=[low.pk]), **_current("sort=risk&due=day"))
    assert [card.intent for card in news.context["queue"]] == ["Medium", "Low"]
    decide = reverse("console-decide", args=[low.pk])
    with tenant_scope(low.tenant):
        face = face_hash(low)
    after = browser(owner).post(decide, {"choice": "approve", "face": face}, **_current("risk=high"))
    assert after.context["card"].pk == high.pk
    assert after["HX-Replace-Url"].endswith("?risk=high")


def test_form_keeps_the_filter_without_scripts(owner: Any, cards: list[Card]) -> None:
    medium, client = cards[1], browser(owner)
    address = reverse("console-card", args=[medium.pk])
    page = client.get(f"{address}?risk=medium&sort=newest").content.decode()
    assert page.count('name="queue" value="?risk=medium&amp;sort=newest"') == 2
    answer = {"choice": "approve", "queue": "?risk=medium&sort=newest"}
    with tenant_scope(medium.tenant):
        answer["face"] = face_hash(medium)
    asked = client.post(reverse("console-decide", args=[medium.pk]), answer)
    assert [card.intent for card in asked.context["queue"]] == ["Medium"]
    assert f'href="{address}?risk=medium&amp;sort=newest" hx-get' in asked.content.decode()
    decided = client.post(reverse("console-decide", args=[medium.pk]), {**answer, "confirmed": "approve"})
    assert decided["Location"] == f"{address}?risk=medium&sort=newest"


def test_assigning_keeps_the_filter_and_a_forged_one_leads_nowhere_else(owner: Any, cards: list[Card]) -> None:
    address, assign = (reverse(name, args=[cards[0].pk]) for name in ("console-card", "console-assign"))
    answer = browser(owner).post(assign, {"to": str(owner.pk), "queue": "?risk=low"})
    assert answer["Location"] == f"{address}?risk=low"
    forged = browser(owner).post(assign, {"to": "", "queue": "//evil.example?risk=grave&next=/x"})
    assert forged["Location"] == address


def test_address_of_another_page_is_no_filter(owner: Any, cards: list[Card]) -> None:
    sent = {**HTMX, "HTTP_HX_CURRENT_URL": "http://testserver/console/activity/?risk=high"}
    page = browser(owner).get(REVIEW, **sent)
    assert len(page.context["queue"]) == 3


def test_filter_without_a_match_says_how_many_wait(owner: Any, cards: list[Card]) -> None:
    client = browser(owner)
    page = client.get(f"{REVIEW}?risk=irreversible").content.decode()
    assert "No cards match these filters" in page
    assert "3 cards are waiting in the whole queue." in page
    assert "0 of 3 waiting" in page
    assert "Nothing to review" not in page
    assert client.get(reverse("console-review-news"), **_current("risk=irreversible")).status_code == 204
    assert client.get(reverse("console-review-news"), **_current("risk=low")).status_code == 200


def test_notice_of_many_risky_cards_counts_the_whole_queue(tenant: Any, owner: Any) -> None:
    for _ in range(6):
        make_card(tenant, risk=Risk.HIGH)
    assert "Many high-risk decisions are waiting" in browser(owner).get(f"{REVIEW}?risk=low").content.decode()


@pytest.mark.parametrize("count", [1, 3])
def test_filter_takes_no_query_of_its_own(tenant: Any, owner: Any, count: int, django_assert_num_queries: Any) -> None:
    for _ in range(count):
        make_card(tenant)
    client = browser(owner)
    client.get(REVIEW)
    with django_assert_num_queries(29):
        client.get(f"{REVIEW}?risk=low&kind=gate&sort=risk")


def test_order_of_a_filter_is_stable() -> None:
    moment = now()
    cards = [
        Card(risk=risk, intent=f"{risk} {number}", kind=CardKind.PLAN, created_at=moment - timedelta(minutes=number))
        for number in range(2)
        for risk in (Risk.LOW, Risk.HIGH)
    ]
    found = QueueFilter(sort=Sort.RISK).apply(cards, user=None, moment=moment)  # type: ignore[arg-type]
    assert [card.intent for card in found] == ["high 0", "high 1", "low 0", "low 1"]


def test_query_string_names_what_differs_from_the_whole_queue() -> None:
    assert filter_from({"risk": "", "sort": "deadline"}).query_string == ""
    assert filter_from({"risk": "low", "sort": "risk"}).query_string == "?risk=low&sort=risk"
