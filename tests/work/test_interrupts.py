"""Cards in the shape of Agent Inbox: what is asked, and responses that decide no more than a signed decision does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.approvals import queries
from apps.approvals.enums import CardKind, CardStatus, PasskeyRule, Risk
from apps.approvals.models import Answer, ApprovalPolicy, ApprovalToken, Card
from apps.tenants.enums import KeyScope
from apps.tenants.services import create_api_key
from kernel.tenancy import tenant_scope
from tests.approvals.test_client_keys import Program, is_untouched, state
from tests.factories.approvals import open_card
from tests.factories.cards import make_kind
from tests.factories.console import browser
from tests.factories.tenants import make_tenant
from tests.factories.work import Desk, make_desk

SIGNED = ("face_hash", "answered_at", "key_id", "signature")


class AgentInbox(Program):
    """A program that speaks the shape of Agent Inbox."""

    def interrupt(self, card: Card) -> Any:
        answer = Client().get(f"/api/v1/cards/{card.pk}/interrupt", headers={"authorization": f"Bearer {self.key}"})
        assert answer.status_code == 200, answer.content
        return answer.json()

    def send_response(self, card: Card, body: dict[str, Any], *, key: str = "") -> tuple[int, Any]:
        answer = Client().post(
            f"/api/v1/cards/{card.pk}/interrupt-response",
            json.dumps(body),
            "application/json",
            headers={"authorization": f"Bearer {key or self.key}"},
        )
        return answer.status_code, answer.json()

    def signed(self, card: Card, choice: str, **claims: Any) -> dict[str, Any]:
        body = self.body(card, choice, claims=claims)
        return {name: body[name] for name in SIGNED}

    def respond(self, card: Card, kind: str, args: Any = None, *, choice: str, **claims: Any) -> tuple[int, Any]:
        return self.send_response(card, {"type": kind, "args": args, **self.signed(card, choice, **claims)})

    def refused(self, card: Card, kind: str, args: Any = None, *, choice: str, **claims: Any) -> tuple[int, str]:
        status, said = self.respond(card, kind, args, choice=choice, **claims)
        return status, said["error"]["code"]


@pytest.fixture
def inbox(tenant: Any, approver: Any) -> AgentInbox:
    return AgentInbox(tenant, approver)


@pytest.fixture
def card(tenant: Any) -> Card:
    return open_card(tenant)


@pytest.fixture
def desk(tenant: Any, tmp_path: Path) -> Desk:
    return make_desk(tenant, tmp_path)


def open_cards(card: Card) -> list[Card]:
    with tenant_scope(card.tenant):
        return list(queries.open_cards())


def said(card: Card) -> Any:
    with tenant_scope(card.tenant):
        return Answer.objects.get(card=card).said


# --- hostile responses


@pytest.mark.parametrize("missing", SIGNED)
@pytest.mark.parametrize("kind", ["accept", "response"])
def test_response_without_a_signature_decides_nothing(inbox: AgentInbox, card: Card, kind: str, missing: str) -> None:
    body = {"type": kind, "args": "No.", **inbox.signed(card, "approve")}
    del body[missing]
    status, answer = inbox.send_response(card, body)
    assert status == 400
    assert answer["error"]["code"] == "invalid"
    assert is_untouched(card)


def test_signature_of_a_rejection_accepts_nothing(inbox: AgentInbox, card: Card) -> None:
    assert inbox.refused(card, "accept", choice="decline") == (403, "signature_invalid")
    assert is_untouched(card)


def test_signature_of_an_approval_declines_nothing(inbox: AgentInbox, card: Card) -> None:
    assert inbox.refused(card, "response", "No.", choice="approve") == (403, "signature_invalid")
    assert is_untouched(card)


def test_other_words_than_the_signed_ones_decide_nothing(inbox: AgentInbox, card: Card) -> None:
    words = {"choice": "decline", "freetext": "Yes."}
    assert inbox.refused(card, "response", "No.", choice="decline", said=words) == (403, "signature_invalid")
    assert is_untouched(card)


def test_card_that_has_changed_is_refused(inbox: AgentInbox, card: Card) -> None:
    body = {"type": "accept", **inbox.signed(card, "approve"), "face_hash": "0" * 64}
    status, answer = inbox.send_response(card, body)
    assert status == 409
    assert answer["error"]["code"] == "card_changed"
    assert is_untouched(card)


def test_policies_count_as_for_a_decision(inbox: AgentInbox, card: Card, tenant: Any) -> None:
    with tenant_scope(tenant):
        ApprovalPolicy.objects.create(passkey=PasskeyRule.REQUIRED)
    assert inbox.refused(card, "accept", choice="approve") == (403, "client_key_rights")
    risky = open_card(tenant, declared_risk=Risk.HIGH)
    assert inbox.refused(risky, "accept", choice="approve") == (403, "client_key_rights")
    assert is_untouched(card)


def test_only_a_key_with_the_scope_of_decisions_responds(
    inbox: AgentInbox, card: Card, tenant: Any, owner: Any
) -> None:
    body = {"type": "accept", **inbox.signed(card, "approve")}
    with tenant_scope(tenant):
        reader = create_api_key("Reader", scopes=(KeyScope.CARDS_READ,)).key
    for sent in (body, {"type": "ignore"}):
        assert inbox.send_response(card, sent, key=reader)[1]["error"]["code"] == "forbidden_scope"
    answer = browser(owner).post(f"/api/v1/cards/{card.pk}/interrupt-response", json.dumps(body), "application/json")
    assert answer.status_code == 401
    assert is_untouched(card)


def test_foreign_card_is_not_found(inbox: AgentInbox, card: Card) -> None:
    foreign = open_card(make_tenant())
    body = {"type": "accept", **inbox.signed(card, "approve")}
    assert inbox.send_response(foreign, body)[0] == 404
    assert inbox.send_response(foreign, {"type": "ignore"})[0] == 404
    read = Client().get(f"/api/v1/cards/{foreign.pk}/interrupt", headers={"authorization": f"Bearer {inbox.key}"})
    assert read.status_code == 404


@pytest.mark.parametrize(
    "action",
    [
        None,
        "text",
        {"action": "act"},
        {"action": "other", "args": {"order": "H-1", "note": 60}},
        {"action": "act", "args": {"order": "H-1", "note": 60, "more": 1}},
        {"action": "act", "args": {"order": "H-1", "note": -1}},
    ],
)
def test_edit_of_anything_else_changes_nothing(inbox: AgentInbox, desk: Desk, action: Any) -> None:
    card = desk.card(desk.waiting(50))
    status, answer = inbox.respond(card, "edit", action, choice="approve", verdict="edit_requested", said={})
    assert status in (400, 409)
    assert answer["error"]["code"] in ("invalid", "edit_unfit", "edit_refused")
    assert is_untouched(card)


def test_edit_is_signed(inbox: AgentInbox, desk: Desk) -> None:
    card = desk.card(desk.waiting(50))
    action = {"action": "act", "args": {"order": "H-1", "note": 60}}
    assert inbox.refused(card, "edit", action, choice="approve") == (403, "signature_invalid")
    assert is_untouched(card)


def test_card_without_values_to_edit_is_not_edited(inbox: AgentInbox, card: Card) -> None:
    action = inbox.interrupt(card)["action_request"]
    refused = inbox.refused(card, "edit", action, choice="approve", verdict="edit_requested", said={})
    assert refused == (409, "edit_unfit")
    assert is_untouched(card)


# --- what is asked


def test_plan_of_one_call_is_that_call(inbox: AgentInbox, desk: Desk) -> None:
    card = desk.card(desk.waiting(50))
    shown = inbox.interrupt(card)
    assert shown["action_request"] == {"action": "act", "args": {"order": "H-1", "note": 50}}
    assert shown["config"] == {
        "allow_ignore": True,
        "allow_respond": True,
        "allow_edit": True,
        "allow_accept": True,
    }
    assert card.intent in shown["description"]


def test_question_is_not_accepted(inbox: AgentInbox, tenant: Any) -> None:
    card = make_kind(tenant, CardKind.DECISION)
    config = inbox.interrupt(card)["config"]
    assert not config["allow_accept"]
    assert not config["allow_edit"]
    assert config["allow_respond"]
    assert inbox.refused(card, "accept", choice="new") == (409, "choice_unknown")


@pytest.mark.parametrize("kind", list(CardKind))
def test_every_kind_of_card_has_the_shape(inbox: AgentInbox, tenant: Any, kind: CardKind) -> None:
    shown = inbox.interrupt(make_kind(tenant, kind))
    assert set(shown) == {"action_request", "config", "description"}
    assert set(shown["action_request"]) == {"action", "args"}
    assert shown["action_request"]["args"]


def test_settled_card_allows_nothing(inbox: AgentInbox, card: Card) -> None:
    inbox.decide(card)
    assert not any(inbox.interrupt(card)["config"].values())


# --- responses


def test_accept_approves(inbox: AgentInbox, card: Card) -> None:
    body = {"type": "accept", "args": None, **inbox.signed(card, "approve")}
    assert inbox.send_response(card, body) == inbox.send_response(card, body)
    with tenant_scope(card.tenant):
        assert ApprovalToken.objects.filter(decision__card=card).count() == 1
    assert said(card) == {"choice": "approve"}


def test_response_declines_with_the_text_as_reason(inbox: AgentInbox, card: Card) -> None:
    words = {"choice": "decline", "freetext": "Ask her first."}
    assert inbox.respond(card, "response", " Ask her first. ", choice="decline", said=words)[0] == 200
    assert said(card) == words
    with tenant_scope(card.tenant):
        assert not ApprovalToken.objects.filter(decision__card=card).exists()


@pytest.mark.parametrize("text", ["new", "Send it to the new address"])
def test_response_answers_a_question_with_an_option(inbox: AgentInbox, tenant: Any, text: str) -> None:
    card = make_kind(tenant, CardKind.DECISION)
    assert inbox.respond(card, "response", text, choice="new")[0] == 200
    assert said(card) == {"choice": "new"}


def test_response_to_a_question_is_one_of_its_options(inbox: AgentInbox, tenant: Any) -> None:
    card = make_kind(tenant, CardKind.DECISION)
    assert inbox.refused(card, "response", "Somewhere else", choice="new") == (409, "choice_unknown")
    assert is_untouched(card)


def test_response_has_a_draft_rephrased(inbox: AgentInbox, tenant: Any) -> None:
    card = make_kind(tenant, CardKind.DRAFT_REVIEW, reversible=True)
    words = {"choice": "rephrase", "freetext": "Shorter."}
    status, answer = inbox.respond(card, "response", "Shorter.", choice="rephrase", said=words)
    assert status == 200, answer
    assert said(card) == words


def test_edited_plan_needs_an_approval_of_its_own(inbox: AgentInbox, desk: Desk) -> None:
    card = desk.card(desk.waiting(50))
    action = {"action": "act", "args": {"order": "H-1", "note": 60}}
    status, answer = inbox.respond(card, "edit", action, choice="approve", verdict="edit_requested", said={})
    assert status == 200, answer
    assert answer["outcome"] == "replaced"
    (new,) = open_cards(card)
    assert answer["card_id"] == str(new.pk)
    assert inbox.interrupt(new)["action_request"] == action
    with tenant_scope(card.tenant):
        assert not ApprovalToken.objects.exists()


def test_edited_draft_has_the_new_text(inbox: AgentInbox, tenant: Any) -> None:
    card = make_kind(tenant, CardKind.DRAFT_REVIEW, reversible=True)
    asked = inbox.interrupt(card)["action_request"]
    action = {**asked, "args": {**asked["args"], "text": "Dear Maria."}}
    assert inbox.respond(card, "edit", action, choice="edit", said={})[0] == 200
    assert open_cards(card)[0].body["draft"] == "Dear Maria."
    other = make_kind(tenant, CardKind.DRAFT_REVIEW, reversible=True)
    elsewhere = {**asked, "args": {**asked["args"], "to": "eve@example.test"}}
    assert inbox.refused(other, "edit", elsewhere, choice="edit", said={}) == (409, "edit_unfit")
    assert is_untouched(other)


def test_edited_batch_keeps_the_named_items(inbox: AgentInbox, tenant: Any) -> None:
    card = make_kind(tenant, CardKind.BATCH_REVIEW)
    asked = inbox.interrupt(card)["action_request"]
    kept = asked["args"]["item_ids"][:2]
    action = {**asked, "args": {"item_ids": kept}}
    assert inbox.respond(card, "edit", action, choice="edit_selection", said={})[0] == 200
    assert open_cards(card)[0].payload["item_ids"] == kept


def test_ignore_decides_nothing_and_says_so(inbox: AgentInbox, card: Card) -> None:
    status, answer = inbox.send_response(card, {"type": "ignore", "args": None})
    assert status == 200
    assert answer == {"outcome": "ignored", "card_id": str(card.pk), "state": "open"}
    assert is_untouched(card)
    assert state(card) == CardStatus.OPEN
