"""Review: what a card shows, and what its buttons do."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.urls import reverse

from apps.approvals.cards.lifecycle import withdraw_card
from apps.approvals.cards.services import decide_card
from apps.approvals.enums import ApprovalVerdict, CardKind, CardStatus, Risk, Withdrawal
from apps.approvals.models import ApprovalPolicy, Card, Look
from apps.approvals.queries import face_hash
from apps.skills.services import save_record
from apps.work.models import Batch
from apps.work.services import edit_plan
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.batches import card_of, carry_out, found, notes, route, undoable_desk
from tests.factories.cards import make_kind
from tests.factories.console import HTMX, browser, make_card
from tests.factories.work import Desk, make_desk
from tests.rivals import race


def _decide(user: Any, card: Card, choice: str = "approve", **data: Any) -> Any:
    return browser(user).post(
        reverse("console-decide", args=[card.pk]), {"choice": choice, "face": face_hash(card), **data}, **HTMX
    )


def _card(card: Card) -> Card:
    with tenant_scope(card.tenant_id):
        found: Card = Card.objects.get(pk=card.pk)
    return found


def _page(user: Any, card: Card | None = None) -> str:
    address = reverse("console-card", args=[card.pk]) if card else reverse("console-review")
    return str(browser(user).get(address).content.decode())


def test_empty_queue_says_so(owner: Any) -> None:
    assert "Nothing to review" in _page(owner)


@pytest.mark.parametrize(
    "wanted",
    [
        "Change the postal address on policy HM-20418",
        "Medium risk",
        "Maria moved on Monday",
        "Approve, change the address",
        "Decline, nothing changes",
        "1 policy",
        "18 Alder Court",
        "Flat 3, 41 Canal Wharf",
        "postcode is new",
    ],
)
def test_card_shows_what_the_contract_asks_for(tenant: Any, owner: Any, wanted: str) -> None:
    make_card(tenant, risk=Risk.MEDIUM)
    assert wanted in _page(owner)


def test_card_with_markup_in_its_words_is_escaped(tenant: Any, owner: Any) -> None:
    make_card(tenant, intent="<img src=x onerror=alert(1)>")
    assert "<img" not in _page(owner)


def test_first_active_card_is_the_one_that_waited_longest(tenant: Any, owner: Any) -> None:
    oldest, newest = make_card(tenant, intent="Oldest"), make_card(tenant, intent="Newest")
    page = browser(owner).get(reverse("console-review"))
    assert page.context["card"] == oldest
    assert page.context["queue"] == [oldest, newest]


@pytest.mark.parametrize(
    ("risk", "is_open"), [("low", False), ("medium", False), ("high", True), ("irreversible", True)]
)
def test_details_are_open_for_grave_cards_only(tenant: Any, owner: Any, risk: str, is_open: bool) -> None:
    page = _page(owner, make_card(tenant, risk=Risk(risk)))
    assert ('<details class="details" open>' in page) is is_open


def test_decline_stands_last(tenant: Any, owner: Any) -> None:
    page = _page(owner, make_card(tenant))
    answers = page[page.index('id="answer"') : page.index('id="declining"')]
    assert re.findall(r'name="choice" value="(\w+)"', answers) == ["approve", "decline"]


def test_low_card_is_approved_with_one_press(tenant: Any, owner: Any) -> None:
    card = make_card(tenant)
    _decide(owner, card)
    assert _card(card).status == CardStatus.DECIDED


def test_medium_card_asks_for_a_confirming_press(tenant: Any, owner: Any) -> None:
    card = make_card(tenant, risk=Risk.MEDIUM)
    page = _decide(owner, card).content.decode()
    assert _card(card).status == CardStatus.OPEN
    assert "Confirm, change the address" in page


def test_medium_card_confirmed_is_approved(tenant: Any, owner: Any) -> None:
    card = make_card(tenant, risk=Risk.MEDIUM)
    _decide(owner, card, confirmed="approve")
    assert _card(card).status == CardStatus.DECIDED


@pytest.mark.parametrize("risk", [Risk.HIGH, Risk.IRREVERSIBLE])
@pytest.mark.parametrize("half", [{}, {"slid": "99"}, {"confirmed": "approve"}])
def test_grave_card_without_the_whole_slide_stays_open(
    tenant: Any, owner: Any, risk: Risk, half: dict[str, str]
) -> None:
    card = make_card(tenant, risk=risk)
    _decide(owner, card, **half)
    assert _card(card).status == CardStatus.OPEN


@pytest.mark.parametrize("risk", [Risk.HIGH, Risk.IRREVERSIBLE])
def test_grave_card_slid_is_approved(tenant: Any, owner: Any, risk: Risk) -> None:
    card = make_card(tenant, risk=risk)
    _decide(owner, card, slid="100")
    assert _card(card).status == CardStatus.DECIDED


@pytest.mark.parametrize("risk", list(Risk))
def test_any_card_is_declined_with_one_press(tenant: Any, owner: Any, risk: Risk) -> None:
    card = make_card(tenant, risk=risk)
    _decide(owner, card, choice="decline")
    with tenant_scope(tenant):
        assert Card.objects.get(pk=card.pk).decision.verdict == "declined"


@pytest.mark.parametrize("choice", ["", "yes", "approved", "conditional", "edit_selection"])
def test_answer_that_is_not_offered_is_refused(tenant: Any, owner: Any, choice: str) -> None:
    assert _decide(owner, make_card(tenant), choice).status_code == 400


def test_next_card_comes_up_after_a_decision(tenant: Any, owner: Any) -> None:
    first, second = make_card(tenant), make_card(tenant, intent="The next one")
    response = _decide(owner, first)
    assert response.context["card"] == second
    assert response["HX-Replace-Url"] == reverse("console-card", args=[second.pk])


def test_decision_is_confirmed_in_words(tenant: Any, owner: Any) -> None:
    card = make_kind(tenant, CardKind.DRAFT_REVIEW, reversible=True)
    assert "Approved: Send Maria Ortega a letter" in _decide(owner, card).content.decode()


def test_second_decision_is_refused_with_who_decided(tenant: Any, owner: Any, approver: Any) -> None:
    card = make_card(tenant)
    _decide(approver, card, "decline")
    response = _decide(owner, card)
    assert response.status_code == 409
    assert f"by {approver.display_name}" in response.content.decode()


def test_rivals_decide_a_card_once(tenant: Any, owner: Any, approver: Any) -> None:
    card = make_card(tenant)
    answers = race(lambda: _decide(owner, card), lambda: _decide(approver, card, "decline"))
    assert sorted(answer.status_code for answer in answers) == [200, 409]


def test_expired_card_is_refused_and_says_so(tenant: Any, owner: Any) -> None:
    card = make_card(tenant)
    with tenant_scope(tenant):
        past = now() - timedelta(hours=1)
        Card.objects.filter(pk=card.pk).update(created_at=past - timedelta(hours=1), expires_at=past)
    response = _decide(owner, card)
    assert response.status_code == 409
    assert "<b>Expired</b>" in response.content.decode()


def test_withdrawn_card_says_so(tenant: Any, owner: Any) -> None:
    card = make_card(tenant)
    with tenant_scope(tenant):
        withdraw_card(card.pk, reason=Withdrawal.REQUESTER)
    assert "<b>Withdrawn</b>" in _page(owner, card)


@pytest.mark.parametrize("role", ["agent", "viewer"])
def test_card_for_those_who_cannot_decide_has_no_buttons(tenant: Any, role: str, request: Any) -> None:
    page = _page(request.getfixturevalue(role), make_card(tenant))
    assert "Only owners and approvers can decide this" in page
    assert 'name="choice"' not in page


def test_news_about_an_open_card_leave_the_card_alone(tenant: Any, owner: Any) -> None:
    response = browser(owner).get(reverse("console-card-news", args=[make_card(tenant).pk]), **HTMX)
    assert response["HX-Retarget"] == "#stack"
    assert 'id="card"' not in response.content.decode()


def test_news_about_a_settled_card_show_who_settled_it(tenant: Any, owner: Any, approver: Any) -> None:
    card = make_card(tenant)
    with tenant_scope(tenant):
        decide_card(card.pk, user=approver, verdict="declined")  # type: ignore[arg-type]
    page = browser(owner).get(reverse("console-card-news", args=[card.pk]), **HTMX).content.decode()
    assert f"by {approver.display_name}" in page


def test_news_about_an_empty_queue_are_none(owner: Any) -> None:
    assert browser(owner).get(reverse("console-review-news"), **HTMX).status_code == 204


def test_approved_card_tells_what_became_of_the_work(tenant: Any, owner: Any, tmp_path: Path) -> None:
    desk = make_desk(tenant, tmp_path)
    item = desk.approved(owner)
    assert "Queued" in _page(owner, desk.card(item))


def test_result_that_can_be_undone_is_offered_beside_the_queue_and_not_counted(tenant: Any, owner: Any) -> None:
    card, result = make_card(tenant, seconds=900), make_kind(tenant, CardKind.POST_EXECUTION)
    found = browser(owner).get(reverse("console-review"))
    text = found.content.decode()
    assert found.context["queue"] == [card]
    assert found.context["waiting"] == 1
    undoable = text.partition('id="undoable"')[2].partition('id="stack"')[0]
    assert reverse("console-decide", args=[result.pk]) in undoable
    assert face_hash(_card(result)) in undoable


def test_viewer_is_offered_no_undo(tenant: Any, viewer: Any) -> None:
    result = make_kind(tenant, CardKind.POST_EXECUTION)
    assert reverse("console-decide", args=[result.pk]) not in _page(viewer)


def test_queue_is_sorted_by_deadline(tenant: Any, owner: Any) -> None:
    later, sooner = make_card(tenant, seconds=3000), make_card(tenant, seconds=600)
    assert browser(owner).get(reverse("console-review")).context["queue"] == [sooner, later]


# --- the next cards, before they are asked for


def _parts(user: Any, *cards: Card) -> str:
    response = browser(user).get(reverse("console-card-parts"), {"id": [str(card.pk) for card in cards]}, **HTMX)
    assert response.status_code == 200
    return str(response.content.decode())


def test_parts_are_the_cards_as_the_page_shows_them_in_the_order_asked_for(tenant: Any, owner: Any) -> None:
    one, two = make_card(tenant, intent="One"), make_card(tenant, intent="Two", risk=Risk.MEDIUM)
    found = _parts(owner, two, one)
    assert re.findall(r'<article [^>]*data-card="([^"]+)"', found) == [str(two.pk), str(one.pk)]
    faces = re.findall(r'name="face" value="([0-9a-f]{64})"', found)
    assert list(dict.fromkeys(faces)) == [face_hash(_card(two)), face_hash(_card(one))]


def test_part_that_nobody_saw_leaves_no_look(tenant: Any, owner: Any) -> None:
    card = make_card(tenant)
    _parts(owner, card)
    with tenant_scope(tenant):
        assert not Look.objects.filter(card=card).exists()
    browser(owner).get(reverse("console-card-news", args=[card.pk]), **HTMX)
    with tenant_scope(tenant):
        assert Look.objects.filter(card=card, user=owner).exists()


def test_parts_leave_out_what_is_settled_foreign_or_unknown(tenant: Any, other_tenant: Any, owner: Any) -> None:
    settled, foreign = make_card(tenant), make_card(other_tenant)
    with tenant_scope(tenant):
        decide_card(settled.pk, user=owner, verdict=ApprovalVerdict.DECLINED)
    assert "<article" not in _parts(owner, settled, foreign)


def test_answer_sent_after_the_page_went_on_gets_only_the_message(tenant: Any, owner: Any) -> None:
    card = make_card(tenant)
    data = {"choice": "approve", "face": face_hash(card)}
    address = reverse("console-decide", args=[card.pk])
    found = browser(owner).post(address, data, HTTP_X_REVIEW_ADVANCED="1", **HTMX).content.decode()
    assert 'id="decided"' in found
    assert 'id="main"' not in found
    assert _card(card).status == CardStatus.DECIDED


def test_badge_counts_the_open_cards(tenant: Any, owner: Any) -> None:
    make_card(tenant)
    make_card(tenant)
    page = browser(owner).get(reverse("console-rail")).content.decode()
    assert '<span class="count" id="review-count">2</span>' in page


def test_queue_with_many_grave_cards_says_so(tenant: Any, owner: Any) -> None:
    for _ in range(6):
        make_card(tenant, risk=Risk.MEDIUM)
    assert "6 medium" in _page(owner)


@pytest.mark.parametrize("count", [1, 3])
def test_review_takes_the_same_queries_for_any_number_of_cards(
    tenant: Any, owner: Any, count: int, django_assert_num_queries: Any
) -> None:
    for _ in range(count):
        make_card(tenant)
    client = browser(owner)
    with django_assert_num_queries(QUERIES_OF_REVIEW):
        client.get(reverse("console-review"))


QUERIES_OF_REVIEW = 29  # two of them for the rail (budgets, unread), three for the records that cards show


def test_decision_that_fails_leaves_nothing_behind(tenant: Any, owner: Any, settings: Any) -> None:
    """Without the signing key no token can be issued; the whole decision is rolled back."""
    settings.SILAS_SIGNING_KEY = ""
    card = make_card(tenant)
    client = browser(owner)
    client.raise_request_exception = False
    client.post(reverse("console-decide", args=[card.pk]), {"choice": "approve", "face": face_hash(card)})
    assert _card(card).status == CardStatus.OPEN


def test_first_of_two_approvals_says_that_somebody_else_has_to_answer(tenant: Any, owner: Any, approver: Any) -> None:
    with tenant_scope(tenant):
        ApprovalPolicy.objects.create(people=2)
    card = make_card(tenant)
    page = _decide(owner, card).content.decode()
    assert "Approved by you. 1 more approval needed" in page
    assert 'value="approve"' not in page


def test_long_queue_names_two_hundred_and_says_how_many_more(tenant: Any, approver: Any) -> None:
    for _ in range(202):
        make_card(tenant)
    found = browser(approver).get(reverse("console-review")).content.decode()
    stack = found[found.index('id="stack"') :]
    assert stack.count("<li>") == 200
    assert "and 2 more" in stack


# --- records that changed


@pytest.fixture
def shown_desk(tenant: Any, tmp_path: Path) -> Desk:
    """A desk whose cards show the note of an order before and after."""
    fact = {"label": "Note", "book": "orders", "key": "{order}", "field": "note", "after": "{note}"}
    return make_desk(tenant, tmp_path, facts=[fact])


def test_open_cards_about_one_record_lead_to_each_other(approver: Any, shown_desk: Desk) -> None:
    one, two = (shown_desk.card(shown_desk.waiting(note)) for note in (30, 40))
    found = _page(approver, one)
    address = reverse("console-card", args=[two.pk])
    assert "1 other open card about the same record" in found
    assert f'href="{address}"' in found


def test_approval_of_a_card_whose_record_changed_shows_the_card_that_took_its_place(
    approver: Any, shown_desk: Desk
) -> None:
    item = shown_desk.waiting(40)
    card = shown_desk.card(item)
    with tenant_scope(shown_desk.tenant):
        save_record("orders", "H-1", subject="C-1", data={"total": 120, "note": 7})
    answer = _decide(approver, card, confirmed="approve", slid="100").content.decode()
    assert "the records changed after that card was shown" in answer
    with tenant_scope(shown_desk.tenant):
        assert Card.objects.get(pk=card.pk).status == "withdrawn"
        assert Card.objects.get(supersedes=card).status == "open"


# --- what the page showed is what is decided


def _shown_face(page: str) -> str:
    found = re.search(r'name="face" value="([0-9a-f]{64})"', page)
    assert found is not None
    return found.group(1)


def _press_face(user: Any, card: Card, face: str, choice: str = "approve", **data: str) -> Any:
    given = {"choice": choice, "face": face, **data}
    return browser(user).post(reverse("console-decide", args=[card.pk]), given, **HTMX)


def _rewrite(superuser_dsn: str, card: Card) -> None:
    with psycopg.connect(superuser_dsn) as raw:
        raw.execute("SET session_replication_role = replica")
        raw.execute("UPDATE approvals_card SET intent = 'Pay everybody' WHERE id = %s", [card.pk])


def test_page_names_the_face_that_it_shows(tenant: Any, owner: Any) -> None:
    card = make_card(tenant)
    assert _shown_face(_page(owner, card)) == face_hash(_card(card))


@pytest.mark.parametrize("choice", ["approve", "decline"])
def test_press_from_a_page_that_showed_something_else_shows_the_card_as_it_is(
    tenant: Any, owner: Any, superuser_dsn: str, choice: str
) -> None:
    card = make_card(tenant)
    shown = _shown_face(_page(owner, card))
    _rewrite(superuser_dsn, card)
    response = _press_face(owner, card, shown, choice)
    page = response.content.decode()
    assert response.status_code == 409
    assert "Pay everybody" in page
    assert "This card has changed since you opened it" in page
    assert _card(card).status == CardStatus.OPEN


@pytest.mark.parametrize("risk", [Risk.MEDIUM, Risk.HIGH])
def test_gesture_begun_on_another_face_is_not_asked_to_be_finished(
    tenant: Any, owner: Any, superuser_dsn: str, risk: Risk
) -> None:
    """The chip and the slide confirm what was shown before them."""
    card = make_card(tenant, risk=risk)
    shown = _shown_face(_page(owner, card))
    _rewrite(superuser_dsn, card)
    response = _press_face(owner, card, shown)
    assert response.status_code == 409
    assert 'name="confirmed"' not in response.content.decode()
    assert _card(card).status == CardStatus.OPEN


def test_press_without_a_face_decides_nothing(tenant: Any, owner: Any) -> None:
    card = make_card(tenant)
    response = browser(owner).post(reverse("console-decide", args=[card.pk]), {"choice": "approve"}, **HTMX)
    assert response.status_code == 409
    assert _card(card).status == CardStatus.OPEN


def test_press_on_a_card_that_a_colleague_edited_shows_the_card_that_asks_now(
    tenant: Any, tmp_path: Path, owner: Any, approver: Any
) -> None:
    desk = make_desk(tenant, tmp_path)
    old = desk.card(desk.waiting(40))
    with tenant_scope(tenant):
        new = edit_plan(old.pk, user=approver, calls=[{"tool": "act", "args": {"order": "H-1", "note": 45}}])
    response = _press_face(owner, old, face_hash(old))
    page = response.content.decode()
    assert response.status_code == 409
    assert f'data-card="{new.pk}"' in page
    assert "a colleague changed that card" in page
    assert _card(new).status == CardStatus.OPEN


def test_press_on_an_undo_whose_records_changed_says_why_nothing_is_undone(
    tenant: Any, tmp_path: Path, approver: Any
) -> None:
    desk = undoable_desk(tenant, tmp_path)
    item = desk.approved(approver)
    carry_out(desk)
    with tenant_scope(tenant):
        card = card_of(desk, Batch.objects.get(undo_of=item.pk).pk)
        save_record("orders", "H-1", subject="C-1", data={"total": 100, "note": 7})
    response = _decide(approver, card)
    page = response.content.decode()
    assert response.status_code == 409
    assert "The records have changed since" in page
    assert _card(card).status == CardStatus.WITHDRAWN
    assert notes(desk, 1) == [7]


def test_approval_of_a_batch_says_what_was_left_out(tenant: Any, tmp_path: Path, approver: Any) -> None:
    note = {"label": "Note", "book": "orders", "key": "{order}", "field": "note", "after": "{note}"}
    desk = undoable_desk(tenant, tmp_path, facts=[note])
    (batch,) = route(desk, found(1), found(2)).batches
    card = card_of(desk, batch.pk)
    assert "not on record" in _page(approver, card)
    with tenant_scope(tenant):
        save_record("orders", "H-2", subject="C-2", data={"total": 100, "note": 7})
    ticked = list(card.payload["item_ids"])
    page = _decide(approver, card, confirmed="approve", slid="100", selected=ticked).content.decode()
    assert "1 action was left out because its record has changed" in page
    assert _card(card).status == CardStatus.DECIDED
