"""Does each button do what it says, and nothing that the card does not offer?"""

from __future__ import annotations

import json
from typing import Any

import pytest

from apps.approvals import queries
from apps.approvals.cards import kinds
from apps.approvals.cards.schemas import AnswerDetails
from apps.approvals.cards.services import answer_card
from apps.approvals.enums import ApprovalVerdict, CardKind, CardStatus, DeclineReason
from apps.approvals.models import ApprovalToken, Card, Decision
from apps.approvals.queries import face_hash
from apps.audit.models import AuditEntry
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.cards import EXAMPLES, MAIL, make_kind

BINDING = [kind for kind, entry in kinds.KINDS.items() if entry.binds]
ASKING = [kind for kind in CardKind if kind not in BINDING]


def answer(card: Card, user: Any, choice: str, **words: Any) -> Decision | Card | SilasError | None:
    try:
        with tenant_scope(card.tenant_id):
            return answer_card(card.pk, user=user, choice=choice, face=face_hash(card), details=AnswerDetails(**words))
    except SilasError as refused:
        return refused


def tokens(card: Card) -> int:
    with tenant_scope(card.tenant_id):
        return ApprovalToken.objects.filter(decision__card=card).count()


def said(card: Card) -> dict[str, Any]:
    with tenant_scope(card.tenant_id):
        return dict(Decision.objects.get(card=card).said)


@pytest.mark.parametrize("kind", CardKind)
def test_no_settles_every_kind_and_opens_nothing(tenant: Any, owner: Any, kind: CardKind) -> None:
    card = make_kind(tenant, kind)
    answer(card, owner, kinds.DECLINE)
    with tenant_scope(tenant):
        assert queries.get_card(card.pk).status == CardStatus.DECIDED
        assert tokens(card) == 0


@pytest.mark.parametrize("kind", BINDING)
def test_approval_of_a_kind_that_binds_is_signed_once(tenant: Any, owner: Any, kind: CardKind) -> None:
    card = make_kind(tenant, kind)
    answer(card, owner, kinds.APPROVE)
    assert tokens(card) == 1


@pytest.mark.parametrize("kind", ASKING)
def test_no_answer_to_a_question_opens_anything(tenant: Any, owner: Any, kind: CardKind) -> None:
    card = make_kind(tenant, kind)
    first = kinds.get_kind(kind).all_choices(card.payload)[0]
    answer(card, owner, first.value)
    assert said(card) == {"choice": first.value}
    assert tokens(card) == 0


OTHERS = [
    (kind, choice.value)
    for kind in CardKind
    for choice in kinds.get_kind(kind).all_choices(EXAMPLES[kind]()["payload"])
    if choice.verdict == ApprovalVerdict.EDIT_REQUESTED
]


@pytest.mark.parametrize(("kind", "choice"), OTHERS)
def test_wanting_it_otherwise_is_no_approval(tenant: Any, owner: Any, kind: CardKind, choice: str) -> None:
    card = make_kind(tenant, kind)
    answer(card, owner, choice, selected=["T-1"], text="Dear Maria")
    assert tokens(card) == 0


@pytest.mark.parametrize("kind", CardKind)
@pytest.mark.parametrize("choice", ["", "approved", "yes", "APPROVE", "drop_everything"])
def test_answer_that_the_card_does_not_offer_is_refused(tenant: Any, owner: Any, kind: CardKind, choice: str) -> None:
    refused = answer(make_kind(tenant, kind), owner, choice)
    assert isinstance(refused, SilasError)
    assert refused.code == "choice_unknown"


def test_batch_with_items_left_out_asks_in_the_order_of_the_picks(tenant: Any, owner: Any) -> None:
    card = make_kind(tenant, CardKind.BATCH_REVIEW)
    new = answer(card, owner, "edit_selection", selected=["T-4", "T-1"])
    assert isinstance(new, Card)
    assert new.payload["item_ids"] == ["T-4", "T-1"]
    assert new.payload["count"] == 2
    assert new.supersedes_id == card.pk


def test_batch_with_items_left_out_shows_them_in_the_order_of_the_picks(tenant: Any, owner: Any) -> None:
    new = answer(make_kind(tenant, CardKind.BATCH_REVIEW), owner, "edit_selection", selected=["T-4", "T-2", "T-4"])
    assert isinstance(new, Card)
    assert [item["item_id"] for item in new.body["items"]] == ["T-4", "T-2"]


def test_batch_with_items_left_out_shows_only_what_it_binds(tenant: Any, owner: Any) -> None:
    new = answer(make_kind(tenant, CardKind.BATCH_REVIEW), owner, "edit_selection", selected=["T-4"])
    assert isinstance(new, Card)
    assert [item["item_id"] for item in new.body["items"]] == ["T-4"]
    assert new.affected == "1 of 4 items"


def test_reworded_draft_binds_and_shows_the_new_words(tenant: Any, owner: Any) -> None:
    new = answer(make_kind(tenant, CardKind.DRAFT_REVIEW), owner, "edit", text="Dear Maria,\r\nit is done.")
    assert isinstance(new, Card)
    assert (new.payload["args"]["text"], new.body["draft"]) == ("Dear Maria,\nit is done.",) * 2


def test_reworded_draft_goes_to_nobody_else(tenant: Any, owner: Any) -> None:
    card = make_kind(tenant, CardKind.DRAFT_REVIEW)
    new = answer(card, owner, "edit", text="Dear Maria")
    assert isinstance(new, Card)
    assert new.payload["args"]["to"] == card.payload["args"]["to"]


def test_just_this_once_is_an_approval_that_says_so(tenant: Any, owner: Any) -> None:
    card = make_kind(tenant, CardKind.PERMISSION_ESCALATION)
    answer(card, owner, "just_this_once")
    assert said(card) == {"choice": "just_this_once"}
    assert tokens(card) == 1


def test_option_of_a_question_is_kept_with_its_words(tenant: Any, owner: Any) -> None:
    card = make_kind(tenant, CardKind.DECISION)
    answer(card, owner, "old", freetext=" She is moving back. ")
    assert said(card) == {"choice": "old", "freetext": "She is moving back."}


def test_words_where_none_are_wanted_are_refused(tenant: Any, owner: Any) -> None:
    refused = answer(make_kind(tenant, CardKind.GATE), owner, kinds.APPROVE, freetext="Also refund the rest")
    assert isinstance(refused, SilasError)
    assert refused.code == "freetext_not_wanted"


def test_words_without_end_are_refused(tenant: Any, owner: Any) -> None:
    refused = answer(make_kind(tenant, CardKind.DECISION), owner, "old", freetext="x" * 2001)
    assert isinstance(refused, SilasError)
    assert refused.code == "freetext_too_long"


@pytest.mark.parametrize("selected", [[], ["T-1", "T-2", "T-3", "T-4"], ["T-9"], ["T-1", "T-9"], ["T-1", "T-1", "T-9"]])
def test_selection_that_is_no_strict_part_of_the_batch_is_refused(tenant: Any, owner: Any, selected: list[str]) -> None:
    card = make_kind(tenant, CardKind.BATCH_REVIEW)
    refused = answer(card, owner, "edit_selection", selected=selected)
    assert isinstance(refused, SilasError)
    assert refused.code == "selection_unfit"
    with tenant_scope(tenant):
        assert queries.get_card(card.pk).is_open


@pytest.mark.parametrize(("text", "code"), [("", "text_missing"), (MAIL, "edit_unfit"), ("x" * 20_001, "text_missing")])
def test_draft_that_is_not_reworded_is_refused(tenant: Any, owner: Any, text: str, code: str) -> None:
    refused = answer(make_kind(tenant, CardKind.DRAFT_REVIEW), owner, "edit", text=text)
    assert isinstance(refused, SilasError)
    assert refused.code == code


@pytest.mark.parametrize("text", [None, MAIL, MAIL.replace("\n", "\r\n"), f"{MAIL}\n"])
def test_draft_is_approved_with_the_wording_that_was_shown(tenant: Any, owner: Any, text: str | None) -> None:
    card = make_kind(tenant, CardKind.DRAFT_REVIEW)
    assert isinstance(answer(card, owner, kinds.APPROVE, text=text), Decision)


@pytest.mark.parametrize("text", ["", " \r\n"])
def test_draft_is_not_approved_with_an_emptied_wording(tenant: Any, owner: Any, text: str) -> None:
    card = make_kind(tenant, CardKind.DRAFT_REVIEW)
    refused = answer(card, owner, kinds.APPROVE, text=text)
    assert isinstance(refused, SilasError)
    assert refused.code == "text_missing"
    assert tokens(card) == 0


def test_draft_is_not_approved_with_a_wording_that_was_not_saved(tenant: Any, owner: Any) -> None:
    card = make_kind(tenant, CardKind.DRAFT_REVIEW)
    refused = answer(card, owner, kinds.APPROVE, text=f"{MAIL} PS: a voucher is in the box.")
    assert isinstance(refused, SilasError)
    assert refused.code == "edit_unfit"
    with tenant_scope(tenant):
        assert queries.get_card(card.pk).is_open


@pytest.mark.parametrize("role", ["agent", "viewer", "stranger"])
@pytest.mark.parametrize("kind", CardKind)
def test_card_is_answered_by_nobody_without_the_role(tenant: Any, kind: CardKind, role: str, request: Any) -> None:
    refused = answer(make_kind(tenant, kind), request.getfixturevalue(role), kinds.DECLINE)
    assert isinstance(refused, SilasError)
    assert refused.code == "approver_required"


def test_card_of_another_tenant_is_not_answered(tenant: Any, other_tenant: Any, owner: Any) -> None:
    foreign = make_kind(other_tenant, CardKind.GATE)
    with tenant_scope(tenant), pytest.raises(SilasError) as refused:
        answer_card(foreign.pk, user=owner, choice=kinds.APPROVE, face=face_hash(foreign))
    assert refused.value.status == 404


@pytest.mark.parametrize("kind", CardKind)
def test_reason_is_kept_with_the_decision(tenant: Any, owner: Any, kind: CardKind) -> None:
    card = make_kind(tenant, kind)
    answer(card, owner, kinds.DECLINE, reason=DeclineReason.WRONG_DETAILS, freetext=" Flat 4 ")
    assert said(card) == {"choice": kinds.DECLINE, "reason": "wrong_details", "freetext": "Flat 4"}
    with tenant_scope(tenant):
        decided = AuditEntry.objects.get(event="card_decided", subject=f"card:{card.pk}")
    assert json.loads(decided.data)["reason"] == "wrong_details"
    assert "Flat 4" not in decided.data


@pytest.mark.parametrize("kind", BINDING)
def test_reason_comes_only_with_a_no(tenant: Any, owner: Any, kind: CardKind) -> None:
    card = make_kind(tenant, kind)
    refused = answer(card, owner, kinds.APPROVE, reason=DeclineReason.WRONG_DETAILS)
    assert isinstance(refused, SilasError)
    assert refused.code == "freetext_not_wanted"
    assert tokens(card) == 0
