"""Batches with unusual items: what is selected, what is recommended, and what approving all of it takes."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.urls import reverse

from apps.approvals.cards.schemas import AnswerDetails
from apps.approvals.cards.services import answer_card
from apps.approvals.enums import CardKind
from apps.approvals.models import ApprovalToken, Card
from apps.approvals.queries import face_hash
from apps.console.pages.review import presenter
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.cards import EXAMPLES, make_kind
from tests.factories.console import HTMX, browser

ALL = ["T-1", "T-2", "T-3", "T-4"]
USUAL = ["T-1", "T-3", "T-4"]


@pytest.fixture
def batch(tenant: Any) -> Card:
    """Four lines; the second is unusual."""
    return make_kind(tenant, CardKind.BATCH_REVIEW)


def _even(tenant: Any) -> Card:
    body = EXAMPLES[CardKind.BATCH_REVIEW]()["body"]
    return make_kind(
        tenant, CardKind.BATCH_REVIEW, body={**body, "items": [{**each, "unusual": False} for each in body["items"]]}
    )


def _press(user: Any, card: Card, ticked: list[str], choice: str = "approve", **data: str) -> Any:
    given = {"choice": choice, "face": face_hash(card), "selected": ticked, "confirmed": choice, "slid": "100", **data}
    return browser(user).post(reverse("console-decide", args=[card.pk]), given, **HTMX)


def _is_open(card: Card) -> bool:
    with tenant_scope(card.tenant_id):
        return bool(Card.objects.get(pk=card.pk).is_open)


def _ticked(page: str) -> list[str]:
    return re.findall(r'name="selected" form="answer" value="([^"]+)" checked', page)


def _opened(user: Any, card: Card) -> str:
    return str(browser(user).get(reverse("console-card", args=[card.pk])).content.decode())


@pytest.mark.parametrize("ticked", [USUAL, ["T-2"], [], [*USUAL, "T-9"]])
def test_approval_of_the_whole_batch_is_refused_while_a_line_is_unticked(
    batch: Card, owner: Any, ticked: list[str]
) -> None:
    response = _press(owner, batch, ticked)
    assert response.status_code == 409
    assert _is_open(batch) is True
    with tenant_scope(batch.tenant_id):
        assert not ApprovalToken.objects.exists()


def test_refusal_says_how_many_lines_are_unticked(batch: Card, owner: Any) -> None:
    assert "2 lines are not ticked" in _press(owner, batch, ["T-1", "T-3"]).content.decode()


def test_refusal_has_a_code_of_its_own(batch: Card, owner: Any) -> None:
    with tenant_scope(batch.tenant_id), pytest.raises(SilasError) as refusal:
        answer_card(batch.pk, user=owner, choice="approve", face=face_hash(batch), details=AnswerDetails(ticked=USUAL))
    assert refusal.value.code == "ticks_unfit"
    assert refusal.value.status == 409


def test_face_without_boxes_says_yes_to_what_the_card_binds(batch: Card, owner: Any) -> None:
    """Spec 8.1: approving the whole batch comes without a selection."""
    with tenant_scope(batch.tenant_id):
        answer_card(batch.pk, user=owner, choice="approve", face=face_hash(batch))
    assert not _is_open(batch)


def test_approval_with_every_line_ticked_is_taken(batch: Card, owner: Any) -> None:
    assert _press(owner, batch, ALL).status_code == 200
    assert _is_open(batch) is False


def test_no_needs_no_ticks(batch: Card, owner: Any) -> None:
    assert _press(owner, batch, [], "decline").status_code == 200
    assert _is_open(batch) is False


def test_ticked_lines_are_asked_about_anew(batch: Card, owner: Any) -> None:
    assert "Only 3 of 4" in _press(owner, batch, USUAL, "edit_selection").content.decode()


def test_ticks_of_a_refused_press_stay(batch: Card, owner: Any) -> None:
    assert _ticked(_press(owner, batch, ["T-2"]).content.decode()) == ["T-2"]


def test_ticks_stay_while_the_page_asks_to_confirm(batch: Card, owner: Any) -> None:
    page = _press(owner, batch, ALL, confirmed="", slid="").content.decode()
    assert _is_open(batch)
    assert _ticked(page) == ALL


def test_unusual_line_is_unticked_and_says_why(batch: Card, owner: Any) -> None:
    page = _opened(owner, batch)
    line = re.search(r'<label class="line unusual">.*?</label>', page, re.DOTALL)
    assert _ticked(page) == USUAL
    assert line
    assert "looks unusual" in line[0]
    assert "nobody wrote for a week" in line[0]


def test_every_line_is_listed(batch: Card, owner: Any) -> None:
    page = _opened(owner, batch)
    assert [f'value="{each}"' in page for each in ALL] == [True] * 4


def test_of_a_mixed_batch_the_ticked_lines_come_first(batch: Card) -> None:
    buttons = presenter.buttons_of(batch)
    assert [(one.value, one.place, one.key) for one in buttons] == [
        ("edit_selection", "first", "a"),
        ("approve", "middle", ""),
        ("decline", "last", "d"),
    ]


def test_of_an_even_batch_all_of_it_comes_first(tenant: Any) -> None:
    first = presenter.buttons_of(_even(tenant))[0]
    assert first.value == "approve"
    assert first.place == "first"
    assert first.key == "a"


def test_all_lines_of_an_even_batch_are_ticked(tenant: Any, owner: Any) -> None:
    assert _ticked(_opened(owner, _even(tenant))) == ALL
