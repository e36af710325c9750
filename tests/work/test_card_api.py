"""Programs assign cards, change a plan before its approval, and take approvals back: for the member whose key they
have, and with the API key alone only what decides nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from apps.approvals.models import Answer, Card, Decision, TokenRevocation
from apps.approvals.queries import get_card
from apps.audit.models import AuditEntry
from apps.sessions import turn
from apps.sessions.models import ChatSession
from apps.sessions.steps import answer as answer_step
from apps.tenants.enums import KeyScope
from apps.tenants.services import create_api_key
from apps.work import queries, signals
from kernel.tenancy import tenant_scope
from tests.approvals.test_client_keys import Program
from tests.factories.api import code
from tests.factories.console import browser
from tests.factories.sessions import say
from tests.factories.work import Desk, make_desk, note


@pytest.fixture
def desk(tenant: Any, tmp_path: Path) -> Desk:
    return make_desk(tenant, tmp_path)


@pytest.fixture
def program(tenant: Any, approver: Any) -> Program:
    return Program(tenant, approver)


@pytest.fixture
def card(desk: Desk) -> Card:
    return desk.card(desk.waiting(50))


def send(key: str, method: str, card: Any, path: str, body: Any = None) -> Any:
    headers = {"authorization": f"Bearer {key}"}
    address = f"/api/v1/cards/{getattr(card, 'pk', card)}/{path}"
    return getattr(Client(), method)(address, body, content_type="application/json", headers=headers)


def foreign_key(tenant: Any, *scopes: KeyScope) -> str:
    with tenant_scope(tenant):
        return create_api_key("Other", scopes=scopes).key


def edit_of(program: Program, card: Card, value: float, **changed: Any) -> dict[str, Any]:
    claims = {"verdict": "edit_requested", "said": {}, **changed.pop("claims", {})}
    signed = program.body(card, claims=claims)
    names = ("key_id", "answered_at", "signature")
    calls = [{"tool": note(value).tool, "args": note(value).args}]
    return {"calls": calls, **{name: signed[name] for name in names}, **changed}


def test_signed_edit_opens_another_card_that_has_to_be_approved(program: Program, card: Card, approver: Any) -> None:
    answer = send(program.key, "post", card, "edit", edit_of(program, card, 60))
    assert answer.status_code == 201
    assert answer.json()["supersedes_id"] == str(card.pk)
    assert answer.json()["state"] == "open"
    assert answer.json()["details"]["calls"][0]["args"] == note(60).args
    with tenant_scope(card.tenant):
        given = Answer.objects.get(card=card)
        assert given.user == approver
        assert given.key_id == program.row.key_id
        assert not get_card(card.pk).is_open


@pytest.mark.parametrize(
    ("changed", "refusal"),
    [
        ({"key_id": ""}, (403, "signature_invalid")),
        ({"key_id": "0" * 16}, (403, "signature_invalid")),
        ({"signature": ""}, (403, "signature_invalid")),
        ({"claims": {"verdict": "approved"}}, (403, "signature_invalid")),
        ({"calls": []}, (409, "edit_unfit")),
        ({"calls": [{"tool": "act"}]}, (400, "invalid")),
        ({"note": "x"}, (400, "invalid")),
    ],
)
def test_edit_that_is_not_signed_or_not_fitting_changes_nothing(
    program: Program, card: Card, changed: Any, refusal: Any
) -> None:
    assert code(send(program.key, "post", card, "edit", edit_of(program, card, 60, **changed))) == refusal
    with tenant_scope(card.tenant):
        assert get_card(card.pk).is_open


def test_member_edits_without_a_signature_and_agent_does_not(card: Card, owner: Any, agent: Any) -> None:
    body = {"calls": [{"tool": note(60).tool, "args": note(60).args}]}
    address = f"/api/v1/cards/{card.pk}/edit"
    assert browser(agent).post(address, body, content_type="application/json").status_code == 403
    assert browser(owner).post(address, body, content_type="application/json").status_code == 201


def test_program_assigns_and_unassigns(program: Program, card: Card, owner: Any) -> None:
    assigned = send(program.key, "put", card, "assignee", {"assignee": str(owner.pk)})
    assert assigned.json()["assignee"]["id"] == str(owner.pk)
    with tenant_scope(card.tenant):
        assert AuditEntry.objects.filter(event="card_assigned").latest("seq").actor == f"api_key:{program.api_key.pk}"
    assert send(program.key, "put", card, "assignee", {"assignee": None}).json()["assignee"] is None


def test_card_is_assigned_to_members_who_may_decide_it(program: Program, card: Card, agent: Any, stranger: Any) -> None:
    assert code(send(program.key, "put", card, "assignee", {"assignee": str(agent.pk)})) == (409, "assignee_unfit")
    assert code(send(program.key, "put", card, "assignee", {"assignee": str(stranger.pk)})) == (404, "not_found")
    assert code(send(program.key, "put", card, "assignee", {})) == (400, "invalid")


def test_approval_is_taken_back_for_the_member_of_the_key(
    program: Program, desk: Desk, owner: Any, approver: Any
) -> None:
    item = desk.approved(owner)
    card = desk.card(item)
    body = {"reason": "The customer called again.", "key_id": program.row.key_id}
    answer = send(program.key, "post", card, "take-back", body)
    assert answer.status_code == 200
    assert answer.json()["approval"]["state"] == "taken_back"
    with tenant_scope(card.tenant):
        assert TokenRevocation.objects.get().user == approver
        entry = AuditEntry.objects.filter(event="approval_revoked").latest("seq")
        assert entry.actor == f"user:{approver.pk}"
        assert json.loads(entry.data)["client_key"] == program.row.key_id
    assert code(send(program.key, "post", card, "take-back", body)) == (409, "token_revoked")


def test_approval_is_not_taken_back_with_the_api_key_alone(program: Program, desk: Desk, owner: Any) -> None:
    item = desk.waiting()
    card = desk.card(item)
    body = {"reason": "x", "key_id": program.row.key_id}
    assert code(send(program.key, "post", card, "take-back", body)) == (404, "not_found")
    desk.decide(item, owner)
    assert code(send(program.key, "post", card, "take-back", {"reason": "x"})) == (403, "signature_invalid")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("put", "assignee", {"assignee": None}),
        ("post", "take-back", {"reason": "x", "key_id": "0" * 16}),
        ("post", "edit", {"calls": []}),
    ],
)
def test_other_tenants_and_keys_without_the_scope_are_refused(
    program: Program, card: Card, tenant: Any, other_tenant: Any, stranger: Any, method: str, path: str, body: Any
) -> None:
    if path != "edit":  # whose program has to name its key first
        assert send(foreign_key(other_tenant), method, card, path, body).status_code == 404
        assert send(program.key, method, uuid4(), path, body).status_code == 404
    refused = send(foreign_key(tenant, KeyScope.CARDS_READ), method, card, path, body)
    assert refused.status_code == 403
    assert refused.json()["error"]["extra"]["scope"] == "cards:decide"
    address = f"/api/v1/cards/{card.pk}/{path}"
    assert getattr(browser(stranger), method)(address, body, content_type="application/json").status_code == 403


def decline(program: Program, card: Card, **changed: Any) -> dict[str, Any]:
    """A signed request that declines a card because an identity was not verified, with a note for colleagues."""
    fields = {"reason": "not_verified", "reason_text": "Rude on the phone", **changed}
    said = {"choice": "decline", "reason": fields["reason"], "freetext": fields["reason_text"]}
    return program.body(card, "decline", claims={"said": said}, **fields)


def test_reason_reaches_the_decision_and_the_customer_and_the_note_only_colleagues(
    desk: Desk, program: Program, card: Card
) -> None:
    told: list[str] = []

    def hear(item: Any, status: str, progress: signals.Progress) -> None:
        told.append(str(progress.text))

    signals.work_changed.connect(hear)
    try:
        assert program.send(card, decline(program, card))[0] == 200
    finally:
        signals.work_changed.disconnect(hear)
    with tenant_scope(desk.tenant):
        decision = Decision.objects.get(card=card)
        assert decision.said == {"choice": "decline", "reason": "not_verified", "freetext": "Rude on the phone"}
        entry = AuditEntry.objects.get(event="card_decided", subject=f"card:{card.pk}")
        assert json.loads(entry.data)["reason"] == "not_verified"
        assert "Rude" not in entry.data
    shown = program.read(card)["decision"]
    assert shown["reason"] == "not_verified"
    assert shown["reason_text"] == "Rude on the phone"
    assert told[-1] == (
        "We couldn't approve this change: Change H-1. Nothing was changed."
        " We couldn't verify your identity. Please verify it and ask again."
    )


def test_bot_that_is_asked_why_not_knows_the_reason_and_never_the_note(
    desk: Desk, program: Program, card: Card
) -> None:
    assert program.send(card, decline(program, card))[0] == 200
    with tenant_scope(desk.tenant):
        session = ChatSession.objects.get(pk=card.session_id)
        assert queries.declined_work(session.pk, subject="C-1").value == [("C-1", "Change H-1", "not_verified")]
    say(session, "Why not?")
    with tenant_scope(desk.tenant):
        state = turn.open_turn(session.pk, consumer="test")
        assert state is not None
        told = "\n".join(answer_step.briefing_of(state, "").constitution)
    assert "nothing was changed: Change H-1. The reason that the visitor was told: not verified" in told
    assert "Rude" not in told


@pytest.mark.parametrize(
    ("changed", "refusal"),
    [
        ({"reason": "rude"}, (400, "invalid")),
        ({"reason": ""}, (400, "invalid")),
        ({"reason": 7}, (400, "invalid")),
        ({"reason": ["not_verified"]}, (400, "invalid")),
        ({"reason_text": "x" * 301}, (400, "invalid")),
        ({"reason_text": {"x": 1}}, (400, "invalid")),
        ({"because": "not_verified"}, (400, "invalid")),
        ({"choice": "approve"}, (400, "freetext_not_wanted")),
    ],
)
def test_bad_reasons_are_refused_and_decide_nothing(
    program: Program, card: Card, changed: dict[str, Any], refusal: tuple[int, str]
) -> None:
    assert program.refusal(card, {**decline(program, card), **changed}) == refusal
    with tenant_scope(card.tenant):
        assert get_card(card.pk).is_open
        assert not Answer.objects.filter(card=card).exists()


@pytest.mark.parametrize("changed", [{"reason": "not_needed"}, {"reason": None}, {"reason_text": "Other"}])
def test_another_reason_than_the_signed_one_decides_nothing(
    program: Program, card: Card, changed: dict[str, Any]
) -> None:
    assert program.refusal(card, {**decline(program, card), **changed}) == (403, "signature_invalid")
    with tenant_scope(card.tenant):
        assert get_card(card.pk).is_open
