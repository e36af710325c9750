"""Spec 5.9: the five keys are proposed from evidence, each changes by its own approval only, within hard caps."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.approvals.cards.services import decide_card
from apps.approvals.enums import ApprovalVerdict, CardKind, CardStatus
from apps.approvals.models import ApprovalToken, Card, TokenRevocation
from apps.suggestions.enums import FreedomState, OutcomeKind
from apps.suggestions.models import FreedomProposal, InitiativeSettings, Outcome
from apps.suggestions.services import calibration
from apps.tenants.models import Deployment
from apps.work import services
from apps.work.models import WorkItem
from apps.work.services import standing_terms
from apps.work.services.standing_terms import MAX_DAYS, MAX_USES, StandingState, StandingTerms
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.proposals import card_about, press
from tests.factories.work import GOAL, Desk, adopt, make_desk, note

USES, DAYS, SCOPE = "standing.max_executions", "standing.expires_at", "standing.scope"
# The same goal, whose author wrote down the number.
FIXED = GOAL.replace('"$note"', "5")


@pytest.fixture
def desk(tenant: Any, tmp_path: Path) -> Desk:
    return make_desk(tenant, tmp_path, risk="low")


def decided(desk: Desk, many: int = 30, kind: OutcomeKind = OutcomeKind.APPROVED, **fields: Any) -> None:
    """People decided about actions of the goal that its standing approval did not cover any more."""
    with tenant_scope(desk.tenant):
        usual = {"deployment": desk.deployment, "family": "act", "kind": kind, "risk": "low", "card_kind": "plan"}
        Outcome.objects.bulk_create(
            Outcome(**{**usual, "goal_id": desk.goal_id, **fields}, subject_id=uuid4()) for _ in range(many)
        )


def evaluate(desk: Desk) -> list[FreedomProposal]:
    with tenant_scope(desk.tenant):
        return calibration.propose_changes(desk.deployment.pk)


def keys(proposals: list[FreedomProposal]) -> list[str]:
    return [change["key"] for proposal in proposals for change in proposal.changes]


def used_up(desk: Desk, owner: Any) -> None:
    """The goal had a standing approval for one use, and used it."""
    desk.allow_standing(owner, uses=1)
    assert desk.propose(note(5)).outcome == "dispatched"


def goal(desk: Desk) -> WorkItem:
    return desk.item(desk.goal_id)


def standing_card(desk: Desk, goal_id: Any = None) -> Card | None:
    with tenant_scope(desk.tenant):
        cards = Card.objects.filter(kind=CardKind.STANDING, status=CardStatus.OPEN)
        card: Card | None = (cards.filter(subject_id=goal_id) if goal_id else cards).first()
        return card


def state(proposal: FreedomProposal) -> str:
    with tenant_scope(proposal.tenant_id):
        return str(FreedomProposal.objects.get(pk=proposal.pk).state)


def later(monkeypatch: pytest.MonkeyPatch, days: int) -> None:
    moment = now() + timedelta(days=days)
    monkeypatch.setattr(standing_terms, "now", lambda: moment)


# --- batch_review.default_size, batch_review.confidence.high_min


@pytest.mark.parametrize(
    ("many", "expected"),
    [(30, ["batch_review.default_size", "batch_review.confidence.high_min"]), (29, [])],
    ids=["enough", "one too few"],
)
def test_batches_grow_by_evidence_about_batches(desk: Desk, many: int, expected: list[str]) -> None:
    decided(desk, many, card_kind="batch_review", goal_id=None)
    assert keys(evaluate(desk)) == expected


def test_decisions_about_a_goal_s_own_actions_do_not_grow_batches(desk: Desk) -> None:
    decided(desk)
    assert evaluate(desk) == []


# --- standing.max_executions


def test_uses_that_people_went_on_approving_are_proposed(desk: Desk, owner: Any) -> None:
    used_up(desk, owner)
    decided(desk)
    (proposal,) = evaluate(desk)
    assert proposal.changes == [
        {"key": USES, "current_value": "1", "proposed_value": "2", "direction": "widen"},
    ]
    card = card_about(desk.tenant, proposal.pk)
    assert card.payload["goal_id"] == str(desk.goal_id)
    assert card.payload["sample_size"] == 30


@pytest.mark.parametrize(
    ("approved", "corrected"), [(29, 0), (28, 2)], ids=["one decision too few", "more than one of twenty corrected"]
)
def test_uses_are_not_proposed_without_evidence(desk: Desk, owner: Any, approved: int, corrected: int) -> None:
    used_up(desk, owner)
    decided(desk, approved)
    decided(desk, corrected, OutcomeKind.DECLINED)
    assert evaluate(desk) == []


def test_permission_that_still_lasts_is_not_widened(desk: Desk, owner: Any) -> None:
    desk.allow_standing(owner, uses=3)
    decided(desk)
    assert evaluate(desk) == []


def test_goal_that_never_had_a_permission_earns_none(desk: Desk) -> None:
    decided(desk)
    assert evaluate(desk) == []


@pytest.mark.parametrize("tool", [{"risk": "high"}, {"risk": "low", "reversible": False}], ids=["high", "irreversible"])
def test_grave_actions_earn_nothing(tenant: Any, tmp_path: Path, owner: Any, tool: dict[str, Any]) -> None:
    desk = make_desk(tenant, tmp_path, **tool)
    used_up(desk, owner)
    decided(desk)
    assert evaluate(desk) == []


def test_goal_whose_skill_is_gone_earns_nothing_and_stops_nothing_else(desk: Desk, owner: Any) -> None:
    used_up(desk, owner)
    decided(desk)
    decided(desk, card_kind="batch_review", goal_id=None, family="look")
    row = goal(desk)
    gone = row.spec.model_copy(update={"skills": ["gone@0"]})
    with tenant_scope(desk.tenant):
        WorkItem.objects.filter(pk=row.pk).update(plan=gone.as_text())
    assert [proposal.family for proposal in evaluate(desk)] == ["look"]


def test_approved_change_lets_nothing_run_until_the_permission_itself_is_given(desk: Desk, owner: Any) -> None:
    used_up(desk, owner)
    decided(desk)
    (proposal,) = evaluate(desk)
    before = goal(desk).approval_token_id
    press(desk.tenant, proposal.pk, owner, "approve")
    assert state(proposal) == FreedomState.APPLIED
    assert goal(desk).approval_token_id == before
    assert desk.propose(note(6, "H-3")).outcome == "card"
    card = standing_card(desk, desk.goal_id)
    assert card is not None
    assert card.max_executions == 2
    with tenant_scope(desk.tenant):
        decide_card(card.pk, user=owner, verdict=ApprovalVerdict.APPROVED)
    assert desk.propose(note(7, "H-2"), subject="C-2").outcome == "dispatched"


def test_declined_change_asks_for_nothing(desk: Desk, owner: Any) -> None:
    used_up(desk, owner)
    decided(desk)
    (proposal,) = evaluate(desk)
    press(desk.tenant, proposal.pk, owner, "decline")
    assert state(proposal) == FreedomState.DECLINED
    assert standing_card(desk) is None


def test_change_of_terms_that_moved_meanwhile_is_refused(desk: Desk, owner: Any) -> None:
    used_up(desk, owner)
    decided(desk)
    (proposal,) = evaluate(desk)
    desk_uses = services.request_standing_approval
    with tenant_scope(desk.tenant):
        card = desk_uses(goal(desk), uses=9, days=30, rationale="It is small.")
        decide_card(card.pk, user=owner, verdict=ApprovalVerdict.APPROVED)
    press(desk.tenant, proposal.pk, owner, "approve")
    assert state(proposal) == FreedomState.REFUSED
    assert standing_card(desk) is None


def test_token_is_good_for_its_own_change_only(desk: Desk, owner: Any) -> None:
    used_up(desk, owner)
    decided(desk)
    (proposal,) = evaluate(desk)
    press(desk.tenant, proposal.pk, owner, "approve")
    with tenant_scope(desk.tenant):
        token = ApprovalToken.objects.get(scope="autonomy_threshold")
        payload = card_about(desk.tenant, proposal.pk).payload
        more = {**payload, "changes": [{**payload["changes"][0], "proposed_value": "100"}]}
        Card.objects.filter(kind=CardKind.STANDING, status=CardStatus.OPEN).update(
            status=CardStatus.EXPIRED, settled_at=now()
        )
        assert standing_terms.apply(more, token, user=owner) is None
        assert standing_terms.apply(payload, token, user=owner) is None
    assert standing_card(desk) is None


def test_two_evaluations_propose_once(desk: Desk, owner: Any) -> None:
    used_up(desk, owner)
    decided(desk)
    assert len(evaluate(desk)) == 1
    assert evaluate(desk) == []


def test_decision_about_what_the_permission_did_not_cover_is_recorded_for_its_goal(desk: Desk, owner: Any) -> None:
    used_up(desk, owner)
    proposal = desk.propose(note(6, "H-3"))
    assert proposal.work_item_id is not None
    desk.decide(desk.item(proposal.work_item_id), owner)
    with tenant_scope(desk.tenant):
        row = Outcome.objects.get()
    assert row.goal_id == desk.goal_id
    assert row.kind == OutcomeKind.APPROVED


def test_actions_that_nobody_corrected_count(desk: Desk, owner: Any) -> None:
    """One ran by itself; with 29 decisions there are 30 actions."""
    used_up(desk, owner)
    desk.work()
    decided(desk, 29)
    assert keys(evaluate(desk)) == [USES]


# --- standing.expires_at


def test_days_are_proposed_when_the_permission_ended_before_it_was_used_up(
    desk: Desk, owner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.allow_standing(owner, uses=3)
    decided(desk)
    later(monkeypatch, 31)
    (proposal,) = evaluate(desk)
    assert proposal.changes == [
        {"key": DAYS, "current_value": "30", "proposed_value": "60", "direction": "widen"},
    ]
    press(desk.tenant, proposal.pk, owner, "approve")
    card = standing_card(desk, desk.goal_id)
    assert card is not None
    assert card.token_seconds == 60 * 86_400


def test_days_are_not_proposed_while_it_lasts(desk: Desk, owner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.allow_standing(owner, uses=3)
    decided(desk)
    later(monkeypatch, 29)
    assert evaluate(desk) == []


# --- standing.scope


@pytest.fixture
def fixed(tenant: Any, tmp_path: Path, owner: Any) -> Desk:
    """A goal that may note 5 by itself; the company evaluates after three decisions."""
    make_desk(tenant, tmp_path, risk="low")
    desk = adopt(tenant, FIXED)
    desk.allow_standing(owner)
    with tenant_scope(tenant):
        InitiativeSettings.objects.create(min_samples=3, window_actions=5)
    return desk


def near_misses(desk: Desk, owner: Any, many: int, verdict: ApprovalVerdict = ApprovalVerdict.APPROVED) -> None:
    for number, (order, who) in enumerate([("H-1", "C-1"), ("H-2", "C-2"), ("H-3", "C-1")][:many]):
        proposal = desk.propose(note(6 + number, order), subject=who)
        assert proposal.work_item_id is not None
        desk.decide(desk.item(proposal.work_item_id), owner, verdict)


def test_argument_that_people_went_on_approving_is_proposed_as_open(fixed: Desk, owner: Any) -> None:
    near_misses(fixed, owner, 3)
    (proposal,) = evaluate(fixed)
    assert proposal.changes == [
        {"key": SCOPE, "current_value": "act (order)", "proposed_value": "act (note, order)", "direction": "widen"},
    ]
    press(fixed.tenant, proposal.pk, owner, "approve")
    with tenant_scope(fixed.tenant):
        active = Deployment.objects.get(pk=fixed.deployment.pk).active_goal_id
    assert active != fixed.goal_id
    card = standing_card(fixed, active)
    assert card is not None
    with tenant_scope(fixed.tenant):
        decide_card(card.pk, user=owner, verdict=ApprovalVerdict.APPROVED)
    assert active is not None
    with tenant_scope(fixed.tenant):
        again = Desk(fixed.tenant, Deployment.objects.get(pk=fixed.deployment.pk), active)
        WorkItem.objects.exclude(pk=active).filter(type="task").update(created_at=now() - timedelta(days=2))
    assert again.propose(note(9)).outcome == "dispatched"


@pytest.mark.parametrize(
    ("many", "verdict"),
    [(2, ApprovalVerdict.APPROVED), (3, ApprovalVerdict.DECLINED)],
    ids=["one too few", "declined"],
)
def test_argument_is_not_opened_without_evidence(fixed: Desk, owner: Any, many: int, verdict: ApprovalVerdict) -> None:
    near_misses(fixed, owner, many, verdict)
    assert SCOPE not in keys(evaluate(fixed))


# --- fewer, and one press


def test_many_corrections_propose_fewer_uses_and_end_the_permission(desk: Desk, owner: Any) -> None:
    desk.allow_standing(owner, uses=4)
    decided(desk, 24)
    decided(desk, 6, OutcomeKind.UNDO)
    (proposal,) = evaluate(desk)
    assert [change["direction"] for change in proposal.changes] == ["tighten", "tighten"]
    press(desk.tenant, proposal.pk, owner, "approve")
    card = standing_card(desk, desk.goal_id)
    assert card is not None
    assert card.max_executions == 2
    with tenant_scope(desk.tenant):
        assert TokenRevocation.objects.count() == 1
    assert desk.propose(note(5)).outcome == "card"


def test_one_press_ends_the_permission(desk: Desk, owner: Any) -> None:
    desk.allow_standing(owner, uses=4)
    with tenant_scope(desk.tenant):
        assert calibration.tighten_approvals(desk.deployment.pk, f"goal:{desk.goal_id}", user=owner)
    assert desk.propose(note(5)).outcome == "card"


# --- the rules, from values


TERMS = st.builds(
    StandingTerms,
    uses=st.integers(1, 200),
    days=st.integers(1, 365),
    open_args=st.frozensets(st.sampled_from(["note", "order", "place"])),
    tool=st.just("act"),
)
STATES = st.builds(StandingState, terms=TERMS, used_up=st.booleans(), expired=st.booleans())


@given(STATES)
def test_a_wider_step_changes_one_key_and_keeps_the_caps(state: StandingState) -> None:
    before, after = state.terms, standing_terms.wider_terms(state)
    assert len(standing_terms.changes(before, after)) <= 1
    assert before.uses <= after.uses <= max(MAX_USES, before.uses)
    assert before.days <= after.days <= max(MAX_DAYS, before.days)
    assert after.open_args == before.open_args


@given(STATES)
def test_a_tighter_step_never_allows_more(state: StandingState) -> None:
    after = standing_terms.tighter_terms(state)
    assert 1 <= after.uses <= state.terms.uses
    assert 1 <= after.days <= state.terms.days


@given(TERMS, st.sampled_from(["note", "order", "place"]))
def test_changes_say_exactly_what_changes(before: StandingTerms, argument: str) -> None:
    after = standing_terms.opened(before, argument)
    for step in (after, standing_terms.tighter_terms(StandingState(before, used_up=False, expired=False))):
        told = standing_terms.changes(before, step)
        assert standing_terms.terms_after(before, told) == step


@given(
    TERMS,
    st.lists(
        st.fixed_dictionaries({"key": st.sampled_from([USES, DAYS, SCOPE]), "proposed_value": st.text(max_size=12)}),
        max_size=3,
    ),
)
def test_unreadable_changes_are_no_terms(before: StandingTerms, changes: list[dict[str, str]]) -> None:
    after: StandingTerms | None = standing_terms.terms_after(before, changes)
    assert after is None or (after.uses >= 1 and after.days >= 1)
