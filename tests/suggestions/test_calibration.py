"""Thresholds are widened by a spent approval of the exact change, tightened at once, and capped (spec 5.1.6)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import DatabaseError
from django.test import Client
from django.urls import reverse

from apps.approvals.enums import CardKind
from apps.approvals.models import ApprovalToken, Card, TokenUse
from apps.suggestions.enums import FreedomState, OutcomeKind
from apps.suggestions.models import FreedomProposal, InitiativeSettings, Outcome
from apps.suggestions.services import calibration
from apps.work.confidence import Thresholds
from apps.work.models import ReviewPolicy, ThresholdChange
from apps.work.queries import earned_thresholds
from apps.work.services import thresholds
from kernel.clock import now
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.approvals import expire_cards
from tests.factories.batches import answer, card_of, found, items, route, undoable_desk
from tests.factories.proposals import press
from tests.factories.tenants import make_deployment
from tests.factories.work import Desk
from tests.rivals import race

USUAL = Thresholds(0.85, 0.5, 10)
WIDER = Thresholds(0.8, 0.5, 15)


def decisions(deployment: Any, kind: OutcomeKind = OutcomeKind.APPROVED, many: int = 30, **fields: Any) -> None:
    with tenant_scope(deployment.tenant_id):
        rows = [
            Outcome(
                **{"deployment": deployment, "family": "act", "subject_id": uuid4(), "kind": kind, "risk": "medium"}
                | {"decided_at": now() - timedelta(minutes=place + 1)}
                | fields
            )
            for place in range(many)
        ]
        Outcome.objects.bulk_create(rows)


def evaluate(deployment: Any) -> list[FreedomProposal]:
    with tenant_scope(deployment.tenant_id):
        return calibration.propose_changes(deployment.pk)


def make_proposal_of_change(deployment: Any) -> FreedomProposal:
    decisions(deployment)
    (proposal,) = evaluate(deployment)
    return proposal


def thresholds_of(deployment: Any, family: str = "act", *, earns: bool = True) -> Thresholds:
    with tenant_scope(deployment.tenant_id):
        return earned_thresholds(deployment.pk, family, earns=earns)


def state(proposal: FreedomProposal) -> str:
    with tenant_scope(proposal.tenant_id):
        return str(FreedomProposal.objects.get(pk=proposal.pk).state)


def tighten(deployment: Any, user: Any) -> Any:
    with tenant_scope(deployment.tenant_id):
        return calibration.tighten_approvals(deployment.pk, "act", user=user)


# --- nothing is widened without an approval


def test_evidence_alone_changes_nothing(deployment: Any) -> None:
    make_proposal_of_change(deployment)
    assert thresholds_of(deployment) == USUAL


def test_row_that_widens_without_a_spent_approval_is_refused(deployment: Any, owner: Any) -> None:
    """Write a row without the service."""
    row = {"usual_size": 10, "usual_high": 0.85, "size_before": 10, "high_before": 0.85, "user": owner, "number": 1}
    with pytest.raises(DatabaseError), tenant_scope(deployment.tenant_id):
        ThresholdChange.objects.create(
            deployment=deployment, family="act", direction="widen", size_after=50, high_after=0.7, **row
        )


def test_row_that_calls_widening_tightening_is_refused(deployment: Any, owner: Any) -> None:
    row = {"usual_size": 10, "usual_high": 0.85, "size_before": 10, "high_before": 0.85, "user": owner, "number": 1}
    with pytest.raises(DatabaseError), tenant_scope(deployment.tenant_id):
        ThresholdChange.objects.create(
            deployment=deployment, family="act", direction="tighten", size_after=50, high_after=0.85, **row
        )


def write_change(deployment: Any, owner: Any, **fields: Any) -> None:
    """Write a forged row with the web role."""
    usual = {"usual_size": USUAL.size, "usual_high": USUAL.high_min, "size_before": 10, "high_before": 0.85}
    row = {"family": "act", "number": 1, "direction": "widen", "size_after": 10, "high_after": 0.85, **usual, **fields}
    with tenant_scope(deployment.tenant_id):
        ThresholdChange.objects.create(deployment=deployment, user=owner, **row)


def test_row_that_lies_about_what_held_before_is_refused(deployment: Any, owner: Any) -> None:
    lies = {"direction": "tighten", "size_before": 50, "high_before": 0.0, "size_after": 50, "high_after": 0.0}
    with pytest.raises(DatabaseError, match="without a spent approval"):
        write_change(deployment, owner, **lies)
    assert thresholds_of(deployment) == USUAL


def test_row_that_lies_about_what_was_earned_before_is_refused(tenant: Any, deployment: Any, owner: Any) -> None:
    press(tenant, make_proposal_of_change(deployment).pk, owner, "approve")
    lies = {"direction": "tighten", "size_before": 50, "high_before": 0.8, "size_after": 50, "high_after": 0.8}
    with pytest.raises(DatabaseError, match="without a spent approval"):
        write_change(deployment, owner, number=2, **lies)
    assert thresholds_of(deployment) == WIDER


def test_row_far_ahead_that_would_outlast_every_tightening_is_refused(tenant: Any, deployment: Any, owner: Any) -> None:
    press(tenant, make_proposal_of_change(deployment).pk, owner, "approve")
    same = {"direction": "tighten", "size_before": 15, "high_before": 0.8, "size_after": 15, "high_after": 0.8}
    with pytest.raises(DatabaseError, match="numbered in order"):
        write_change(deployment, owner, number=2_000_000_000, **same)


@pytest.mark.parametrize(
    "more",
    [
        {"size_after": 50, "high_after": 0.8},
        {"size_after": 15, "high_after": 0.7},
        {"family": "pay"},
        {"place": "other"},
    ],
    ids=["larger", "less sure", "other family", "other chatbot"],
)
def test_spent_approval_widens_nothing_but_what_it_says(
    tenant: Any, deployment: Any, owner: Any, more: dict[str, Any]
) -> None:
    """An approval that came too late is spent, and no row has it."""
    proposal = make_proposal_of_change(deployment)
    tighten(deployment, owner)
    press(tenant, proposal.pk, owner, "approve")
    with tenant_scope(tenant):
        token = ApprovalToken.objects.get()
        assert not ThresholdChange.objects.filter(approval_token=token).exists()
    place = make_deployment(tenant) if more.pop("place", "") else deployment
    number = 2 if place == deployment and "family" not in more else 1
    row = {"size_after": 15, "high_after": 0.8, "number": number, "approval_token": token, **more}
    with pytest.raises(DatabaseError, match="without a spent approval"):
        write_change(place, owner, **row)


def test_approval_of_something_else_widens_nothing(tenant: Any, deployment: Any, owner: Any) -> None:
    """A genuine token for a smaller change, used with a payload that asks for more."""
    proposal = make_proposal_of_change(deployment)
    press(tenant, proposal.pk, owner, "approve")
    with tenant_scope(tenant):
        card, token = Card.objects.get(subject_id=proposal.pk), ApprovalToken.objects.get()
        before = ThresholdChange.objects.count()
        more = {**card.payload, "changes": thresholds.changes(WIDER, Thresholds(0.7, 0.5, 50))}
        assert thresholds.apply(more, token, user=owner) is None
        assert ThresholdChange.objects.count() == before


def test_change_is_not_rewritten(tenant: Any, deployment: Any, owner: Any) -> None:
    press(tenant, make_proposal_of_change(deployment).pk, owner, "approve")
    with pytest.raises(DatabaseError), tenant_scope(tenant):
        ThresholdChange.objects.update(size_after=50)


@pytest.mark.parametrize("choice", ["decline", "tighten_now"])
def test_no_widens_nothing(tenant: Any, deployment: Any, owner: Any, choice: str) -> None:
    press(tenant, make_proposal_of_change(deployment).pk, owner, choice)
    after = thresholds_of(deployment)
    assert after.size <= USUAL.size
    assert after.high_min >= USUAL.high_min


def test_card_that_ran_out_widens_nothing(tenant: Any, deployment: Any) -> None:
    proposal = make_proposal_of_change(deployment)
    with tenant_scope(tenant):
        Card.objects.filter(subject_id=proposal.pk).update(expires_at=now())
    expire_cards(tenant)
    assert thresholds_of(deployment) == USUAL


# --- an approval


def test_approval_widens_exactly_what_the_card_says(tenant: Any, deployment: Any, owner: Any) -> None:
    press(tenant, make_proposal_of_change(deployment).pk, owner, "approve")
    assert thresholds_of(deployment) == WIDER


def test_approval_is_spent(tenant: Any, deployment: Any, owner: Any) -> None:
    press(tenant, make_proposal_of_change(deployment).pk, owner, "approve")
    with tenant_scope(tenant):
        assert TokenUse.objects.filter(token_nonce=ApprovalToken.objects.get().nonce).count() == 1


def test_other_families_and_deployments_are_not_widened(tenant: Any, deployment: Any, owner: Any) -> None:
    press(tenant, make_proposal_of_change(deployment).pk, owner, "approve")
    assert thresholds_of(deployment, "delete") == USUAL


def test_what_cannot_be_taken_back_is_not_widened(tenant: Any, deployment: Any, owner: Any) -> None:
    press(tenant, make_proposal_of_change(deployment).pk, owner, "approve")
    assert thresholds_of(deployment, earns=False) == USUAL


def test_approval_of_what_moved_meanwhile_changes_nothing(tenant: Any, deployment: Any, owner: Any) -> None:
    proposal = make_proposal_of_change(deployment)
    tighten(deployment, owner)
    stricter = thresholds_of(deployment)
    press(tenant, proposal.pk, owner, "approve")
    assert thresholds_of(deployment) == stricter
    assert state(proposal) == FreedomState.REFUSED


def test_deployment_s_own_numbers_begin_anew(tenant: Any, deployment: Any, owner: Any) -> None:
    press(tenant, make_proposal_of_change(deployment).pk, owner, "approve")
    with tenant_scope(tenant):
        ReviewPolicy.objects.create(deployment=deployment, default_size=4)
    assert thresholds_of(deployment).size == 4


def test_evidence_is_used_once(tenant: Any, deployment: Any, owner: Any) -> None:
    press(tenant, make_proposal_of_change(deployment).pk, owner, "approve")
    assert evaluate(deployment) == []


def test_caps_hold_however_often_it_is_widened(tenant: Any, deployment: Any, owner: Any) -> None:
    with tenant_scope(tenant):
        ReviewPolicy.objects.create(deployment=deployment, default_size=47, high_min=0.72)
    press(tenant, make_proposal_of_change(deployment).pk, owner, "approve")
    with tenant_scope(tenant):
        assert thresholds.step(deployment.pk, "act", thresholds.Direction.WIDEN) == Thresholds(0.7, 0.5, 50)


def test_family_at_its_caps_is_proposed_no_further(tenant: Any, deployment: Any) -> None:
    with tenant_scope(tenant):
        ReviewPolicy.objects.create(deployment=deployment, default_size=50, high_min=0.70)
    decisions(deployment)
    assert evaluate(deployment) == []


# --- one tap


def test_one_tap_gives_back_what_was_earned(tenant: Any, deployment: Any, owner: Any) -> None:
    press(tenant, make_proposal_of_change(deployment).pk, owner, "approve")
    tighten(deployment, owner)
    assert thresholds_of(deployment) == USUAL


def test_one_tap_where_nothing_was_earned_is_stricter(deployment: Any, owner: Any) -> None:
    tighten(deployment, owner)
    assert thresholds_of(deployment) == Thresholds(0.9, 0.5, 5)


def test_tap_at_the_strictest_changes_nothing(deployment: Any, owner: Any) -> None:
    taps = [tighten(deployment, owner) for _ in range(5)]
    assert taps[-1] is False
    assert thresholds_of(deployment) == Thresholds(1.0, 0.5, 1)


@pytest.mark.parametrize("who", ["agent", "viewer"])
def test_member_who_may_not_decide_taps_in_vain(deployment: Any, who: str, request: Any) -> None:
    with pytest.raises(SilasError) as refusal:
        tighten(deployment, request.getfixturevalue(who))
    assert refusal.value.code == "forbidden_role"


def test_owner_taps_in_the_administration(tenant: Any, deployment: Any, owner: Any) -> None:
    press(tenant, make_proposal_of_change(deployment).pk, owner, "approve")
    client = Client()
    client.force_login(owner)
    with tenant_scope(tenant):
        chosen = [str(Outcome.objects.values_list("pk", flat=True)[0])]
    client.post(
        reverse("admin:autonomy_outcome_changelist"), {"action": "tighten", "_selected_action": chosen, "post": "yes"}
    )
    assert thresholds_of(deployment) == USUAL


def test_tightening_holds_for_what_cannot_be_taken_back_too(deployment: Any, owner: Any) -> None:
    tighten(deployment, owner)
    assert thresholds_of(deployment, earns=False).size == 5


def test_approval_and_tap_at_once_never_both_count(tenant: Any, deployment: Any, owner: Any, approver: Any) -> None:
    """The second one finds other numbers than were proposed, or takes back what was just granted."""
    proposal = make_proposal_of_change(deployment)
    race(lambda: press(tenant, proposal.pk, owner, "approve"), lambda: tighten(deployment, approver))
    assert thresholds_of(deployment) in (USUAL, Thresholds(0.9, 0.5, 5))


# --- what is proposed


def test_one_decision_too_few_proposes_nothing(deployment: Any) -> None:
    decisions(deployment, many=29)
    assert evaluate(deployment) == []


def test_many_corrections_propose_more_cards(deployment: Any) -> None:
    decisions(deployment, many=24)
    decisions(deployment, OutcomeKind.UNDO, many=6)
    assert [each.direction for each in evaluate(deployment)] == ["tighten"]


def test_grave_family_is_proposed_nothing(deployment: Any) -> None:
    decisions(deployment, many=29)
    decisions(deployment, many=1, risk="high")
    assert evaluate(deployment) == []


def test_family_is_asked_about_once_at_a_time(deployment: Any) -> None:
    make_proposal_of_change(deployment)
    assert evaluate(deployment) == []


def test_two_looks_at_once_ask_once(deployment: Any) -> None:
    decisions(deployment)
    race(lambda: evaluate(deployment), lambda: evaluate(deployment))
    with tenant_scope(deployment.tenant_id):
        assert Card.objects.filter(kind=CardKind.AUTONOMY_THRESHOLD).count() == 1


def test_deployment_is_asked_three_times_a_week(deployment: Any) -> None:
    for family in "abcd":
        decisions(deployment, family=family)
    assert len(evaluate(deployment)) == 3


def test_calibration_that_is_off_proposes_nothing(deployment: Any) -> None:
    with tenant_scope(deployment.tenant_id):
        InitiativeSettings.objects.create(calibration=False)
    decisions(deployment)
    assert evaluate(deployment) == []


# --- what people did is recorded where they do it


@pytest.fixture
def desk(tenant: Any, tmp_path: Path) -> Desk:
    return undoable_desk(tenant, tmp_path)


def outcomes(desk: Desk) -> list[tuple[str, str]]:
    with tenant_scope(desk.tenant):
        return list(Outcome.objects.order_by("decided_at").values_list("family", "kind"))


def test_answers_to_batches_are_recorded(desk: Desk, owner: Any) -> None:
    for numbers, choice in (((1, 2), "approve"), ((3, 4), "decline")):
        (batch,) = route(desk, *(found(number) for number in numbers)).batches
        answer(desk, card_of(desk, batch.pk), owner, choice)
    assert outcomes(desk) == [("act", "approved"), ("act", "declined")]


def test_batch_that_was_cut_and_then_approved_was_corrected(desk: Desk, owner: Any) -> None:
    (batch,) = route(desk, found(1), found(2)).batches
    answer(desk, card_of(desk, batch.pk), owner, "edit_selection", selected=[items(desk, batch)[0].plan_hash])
    answer(desk, card_of(desk, batch.pk), owner, "approve")
    assert outcomes(desk) == [("act", "edit_selection")]


def test_batch_that_was_undone_was_corrected(desk: Desk, owner: Any) -> None:
    from apps.work.models import Batch
    from tests.factories.batches import carry_out

    (batch,) = route(desk, found(1)).batches
    answer(desk, card_of(desk, batch.pk), owner, "approve")
    carry_out(desk)
    with tenant_scope(desk.tenant):
        undo = Batch.objects.get(undo_of=batch.pk)
    answer(desk, card_of(desk, undo.pk), owner, "approve")
    assert outcomes(desk) == [("act", "undo")]


def test_earned_threshold_decides_what_comes_in_a_batch(desk: Desk, owner: Any) -> None:
    assert route(desk, found(1, confidence=0.82)).batches == []
    press(desk.tenant, make_proposal_of_change(desk.deployment).pk, owner, "approve")
    assert len(route(desk, found(2, confidence=0.82)).batches) == 1


def test_batch_under_earned_thresholds_still_waits_for_an_approval(desk: Desk, owner: Any) -> None:
    press(desk.tenant, make_proposal_of_change(desk.deployment).pk, owner, "approve")
    (batch,) = route(desk, found(1, confidence=0.82)).batches
    assert batch.status == "proposed"
