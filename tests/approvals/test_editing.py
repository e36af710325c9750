"""An edited payload is a new payload: the old card is void, the new one needs an approval of its own."""

from __future__ import annotations

from typing import Any

import pytest

from apps.approvals import queries, signals
from apps.approvals.cards.services import decide_card, edit_card
from apps.approvals.enums import ApprovalVerdict, Reason, Risk
from apps.approvals.models import ApprovalToken, Card, Decision
from apps.approvals.tokens import payloads
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.approvals.test_tokens import verify
from tests.factories.approvals import make_plan, open_card
from tests.rivals import race


@pytest.fixture
def plan() -> dict[str, Any]:
    return make_plan()


@pytest.fixture
def card(tenant: Any, plan: dict[str, Any]) -> Card:
    return open_card(tenant, plan)


def edit(tenant: Any, card: Card, user: Any, payload: dict[str, Any]) -> Card:
    with tenant_scope(tenant):
        return edit_card(card.pk, user=user, payload=payload)


def refusal(tenant: Any, card: Card, user: Any, payload: dict[str, Any]) -> str:
    with pytest.raises(SilasError) as caught:
        edit(tenant, card, user, payload)
    return caught.value.code


def decide(tenant: Any, card: Card, user: Any) -> Decision | None:
    with tenant_scope(tenant):
        return decide_card(card.pk, user=user, verdict=ApprovalVerdict.APPROVED)


def test_edited_card_binds_the_new_hash(tenant: Any, owner: Any, card: Card, plan: Any) -> None:
    edited = {**plan, "body": "Less"}
    assert edit(tenant, card, owner, edited).payload_hash == payloads.plan_hash(edited) != card.payload_hash


def test_successor_names_the_card_it_replaces(tenant: Any, owner: Any, card: Card, plan: Any) -> None:
    assert edit(tenant, card, owner, {**plan, "body": "Less"}).supersedes_id == card.pk


def test_old_card_can_never_be_approved(tenant: Any, owner: Any, approver: Any, card: Card, plan: Any) -> None:
    edit(tenant, card, owner, {**plan, "body": "Less"})
    with pytest.raises(SilasError) as refused:
        decide(tenant, card, approver)
    assert refused.value.code == "card_decided"


def test_old_card_says_that_an_edit_was_asked_for(tenant: Any, owner: Any, card: Card, plan: Any) -> None:
    edit(tenant, card, owner, {**plan, "body": "Less"})
    with tenant_scope(tenant):
        assert queries.get_card(card.pk).decision.verdict == ApprovalVerdict.EDIT_REQUESTED


def test_edit_mints_nothing(tenant: Any, owner: Any, card: Card, plan: Any) -> None:
    edit(tenant, card, owner, {**plan, "body": "Less"})
    with tenant_scope(tenant):
        assert not ApprovalToken.objects.exists()


def test_approval_of_the_successor_does_not_open_the_old_payload(
    tenant: Any, owner: Any, card: Card, plan: Any
) -> None:
    decision = decide(tenant, edit(tenant, card, owner, {**plan, "body": "Less"}), owner)
    assert decision is not None
    assert verify(tenant, decision.token, plan) is Reason.PLAN_HASH_MISMATCH


def test_edit_that_changes_nothing_is_refused(tenant: Any, owner: Any, card: Card, plan: Any) -> None:
    assert refusal(tenant, card, owner, dict(plan)) == "edit_changes_nothing"


def test_edit_that_is_about_something_else_is_refused(tenant: Any, owner: Any, card: Card) -> None:
    assert refusal(tenant, card, owner, make_plan()) == "edit_changes_subject"


def test_edit_that_leaves_a_field_out_is_refused(tenant: Any, owner: Any, card: Card, plan: Any) -> None:
    assert refusal(tenant, card, owner, {key: plan[key] for key in plan if key != "budget"}) == "payload_shape"


@pytest.mark.parametrize("role", ["agent", "viewer", "stranger"])
def test_edit_without_approving_role_is_refused(tenant: Any, card: Card, plan: Any, request: Any, role: str) -> None:
    assert refusal(tenant, card, request.getfixturevalue(role), {**plan, "body": "Less"}) == "approver_required"


def test_edit_after_a_decision_is_refused(tenant: Any, owner: Any, card: Card, plan: Any) -> None:
    decide(tenant, card, owner)
    assert refusal(tenant, card, owner, {**plan, "body": "Less"}) == "card_decided"


def test_edit_and_approval_at_once_leave_one_of_both(
    tenant: Any, owner: Any, approver: Any, card: Card, plan: Any
) -> None:
    race(lambda: edit(tenant, card, owner, {**plan, "body": "Less"}), lambda: decide(tenant, card, approver))
    with tenant_scope(tenant):
        assert ApprovalToken.objects.exists() != Card.objects.filter(supersedes=card).exists()


def test_edit_keeps_the_rung(tenant: Any, owner: Any, plan: Any) -> None:
    grave = open_card(tenant, plan, declared_risk=Risk.HIGH, reversible=False)
    assert edit(tenant, grave, owner, {**plan, "body": "Less"}).risk == grave.risk == Risk.IRREVERSIBLE


def test_whoever_rewrites_something_grave_cannot_approve_it(tenant: Any, owner: Any, plan: Any) -> None:
    successor = edit(tenant, open_card(tenant, plan, declared_risk=Risk.HIGH), owner, {**plan, "body": "More"})
    with pytest.raises(SilasError) as refused:
        decide(tenant, successor, owner)
    assert refused.value.code == "own_request"


def test_somebody_else_can_approve_the_rewritten(tenant: Any, owner: Any, approver: Any, plan: Any) -> None:
    successor = edit(tenant, open_card(tenant, plan, declared_risk=Risk.HIGH), owner, {**plan, "body": "More"})
    assert decide(tenant, successor, approver) is not None


def test_approvals_to_the_old_card_do_not_count_for_the_new_one(
    tenant: Any, owner: Any, approver: Any, plan: Any
) -> None:
    from apps.approvals.models import ApprovalPolicy

    with tenant_scope(tenant):
        ApprovalPolicy.objects.create(people=2)
    card = open_card(tenant, plan)
    decide(tenant, card, approver)
    assert decide(tenant, edit(tenant, card, owner, {**plan, "body": "Less"}), owner) is None


def test_edit_is_told_to_the_rooms_above(tenant: Any, owner: Any, card: Card, plan: Any) -> None:
    told: list[Any] = []

    def listen(old: Card, new: Card) -> None:
        told.append((old.pk, new.supersedes_id))

    signals.card_edited.connect(listen)
    try:
        edit(tenant, card, owner, {**plan, "body": "Less"})
    finally:
        signals.card_edited.disconnect(listen)
    assert told == [(card.pk, card.pk)]
