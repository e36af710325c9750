"""Whose yes counts, how many are needed, and what each of them is signed with."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError

from apps.approvals import queries, rules
from apps.approvals.cards import answers
from apps.approvals.cards.schemas import Policy
from apps.approvals.cards.services import decide_card
from apps.approvals.enums import ApprovalScope, ApprovalVerdict, CardStatus, Deciders, PasskeyRule, Reason, Risk
from apps.approvals.models import Answer, ApprovalPolicy, ApprovalToken, Card, Decision
from apps.audit.models import AuditEntry
from apps.tenants.models import Membership
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.approvals.test_tokens import verify
from tests.factories.approvals import make_plan, open_card
from tests.factories.tenants import make_member
from tests.rivals import race

APPROVED, DECLINED = ApprovalVerdict.APPROVED, ApprovalVerdict.DECLINED


def policy(tenant: Any, **fields: Any) -> ApprovalPolicy:
    with tenant_scope(tenant):
        row: ApprovalPolicy = ApprovalPolicy.objects.create(**fields)
        return row


def answer(tenant: Any, card: Card, user: Any, verdict: ApprovalVerdict = APPROVED, **terms: Any) -> Decision | None:
    with tenant_scope(tenant):
        return decide_card(card.pk, user=user, verdict=verdict, **terms)


def refusal(tenant: Any, card: Card, user: Any, verdict: ApprovalVerdict = APPROVED, **terms: Any) -> str:
    with pytest.raises(SilasError) as caught:
        answer(tenant, card, user, verdict, **terms)
    return caught.value.code


def status(tenant: Any, card: Card) -> str:
    with tenant_scope(tenant):
        return str(queries.get_card(card.pk).status)


def tokens(tenant: Any) -> int:
    with tenant_scope(tenant):
        return int(ApprovalToken.objects.count())


# --- two people


@pytest.fixture
def two(tenant: Any) -> ApprovalPolicy:
    return policy(tenant, people=2)


def test_first_of_two_approvals_mints_nothing(tenant: Any, two: Any, owner: Any) -> None:
    assert answer(tenant, open_card(tenant), owner) is None
    assert tokens(tenant) == 0


def test_first_of_two_approvals_leaves_the_card_open(tenant: Any, two: Any, owner: Any) -> None:
    card = open_card(tenant)
    answer(tenant, card, owner)
    assert status(tenant, card) == CardStatus.OPEN


def test_second_of_two_approvals_mints_the_token(tenant: Any, two: Any, owner: Any, approver: Any) -> None:
    plan = make_plan()
    card = open_card(tenant, plan)
    answer(tenant, card, owner)
    decision = answer(tenant, card, approver)
    assert decision is not None
    assert verify(tenant, decision.token, plan) is Reason.OK


def test_second_approval_of_the_same_person_is_refused(tenant: Any, two: Any, owner: Any) -> None:
    card = open_card(tenant)
    answer(tenant, card, owner)
    assert refusal(tenant, card, owner) == "answered_already"


def test_one_decline_after_an_approval_ends_it(tenant: Any, two: Any, owner: Any, approver: Any) -> None:
    card = open_card(tenant)
    answer(tenant, card, owner)
    answer(tenant, card, approver, DECLINED)
    assert status(tenant, card) == CardStatus.DECIDED
    assert tokens(tenant) == 0


def test_person_who_said_yes_may_still_decline(tenant: Any, two: Any, owner: Any) -> None:
    card = open_card(tenant)
    answer(tenant, card, owner)
    decision = answer(tenant, card, owner, DECLINED)
    assert decision is not None
    assert decision.verdict == DECLINED


def test_approval_of_somebody_who_lost_the_role_since_does_not_count(
    tenant: Any, two: Any, owner: Any, approver: Any
) -> None:
    card = open_card(tenant)
    answer(tenant, card, approver)
    with tenant_scope(tenant):
        Membership.objects.filter(user=approver).update(role="viewer")
    assert answer(tenant, card, owner) is None
    assert tokens(tenant) == 0


def test_two_last_approvals_at_once_mint_one_token(tenant: Any, two: Any, owner: Any, approver: Any) -> None:
    card = open_card(tenant)
    found = race(lambda: answer(tenant, card, owner), lambda: answer(tenant, card, approver))
    assert sorted(type(one).__name__ for one in found) == ["Decision", "NoneType"]
    assert tokens(tenant) == 1


def test_answer_that_was_written_and_not_signed_does_not_count(
    tenant: Any, two: Any, owner: Any, approver: Any
) -> None:
    card = open_card(tenant)
    with tenant_scope(tenant):
        Answer.objects.create(card=card, user=approver, verdict=APPROVED, answered_at=card.created_at, signature="AAAA")
    assert answer(tenant, card, owner) is None


def test_answer_copied_from_another_card_does_not_count(tenant: Any, two: Any, owner: Any, approver: Any) -> None:
    first, second = open_card(tenant), open_card(tenant)
    answer(tenant, first, approver)
    with tenant_scope(tenant):
        copy = Answer.objects.get(card=first)
        Answer.objects.create(
            card=second,
            user=approver,
            verdict=APPROVED,
            answered_at=copy.answered_at,
            key_id=copy.key_id,
            signature=copy.signature,
        )
    assert answer(tenant, second, owner) is None


def test_number_of_missing_people_counts_down(tenant: Any, two: Any, owner: Any) -> None:
    card = open_card(tenant)
    answer(tenant, card, owner)
    with tenant_scope(tenant):
        assert queries.approval_requirements(card, owner).missing == 1


def test_token_of_two_people_names_both_answers(tenant: Any, two: Any, owner: Any, approver: Any) -> None:
    card = open_card(tenant)
    answer(tenant, card, owner)
    decision = answer(tenant, card, approver)
    assert decision is not None
    assert len(decision.token.conditions["answers"]) == 2


def test_every_approval_is_stored_with_a_signature_that_holds(tenant: Any, two: Any, owner: Any, approver: Any) -> None:
    card = open_card(tenant)
    answer(tenant, card, owner)
    answer(tenant, card, approver)
    with tenant_scope(tenant):
        assert [answers.verify_answer(one) for one in Answer.objects.select_related("card")] == [True, True]


@pytest.mark.parametrize("change", [{"verdict": "declined"}, {"conditions": {"a": 1}}, {"step_up": {"a": 1}}])
def test_changed_answer_does_not_hold(tenant: Any, owner: Any, change: dict[str, Any]) -> None:
    answer(tenant, open_card(tenant), owner)
    with tenant_scope(tenant):
        row = Answer.objects.select_related("card").get()
        for name, value in change.items():
            setattr(row, name, value)
        assert not answers.is_genuine(row)


def test_answer_cannot_be_rewritten(tenant: Any, owner: Any) -> None:
    answer(tenant, open_card(tenant), owner)
    with pytest.raises(DatabaseError, match="cannot be rewritten"), tenant_scope(tenant):
        Answer.objects.update(verdict=DECLINED)


def test_decline_needs_no_signing_key(tenant: Any, owner: Any, settings: Any) -> None:
    settings.SILAS_SIGNING_KEY = ""
    decision = answer(tenant, open_card(tenant), owner, DECLINED)
    assert decision is not None
    assert decision.verdict == DECLINED


def test_first_approval_is_written_down(tenant: Any, two: Any, owner: Any) -> None:
    answer(tenant, open_card(tenant), owner)
    with tenant_scope(tenant):
        assert AuditEntry.objects.order_by("seq").last().event == "card_answered"


# --- whose


def test_policy_for_owners_refuses_an_approver(tenant: Any, approver: Any) -> None:
    policy(tenant, who=Deciders.OWNERS)
    assert refusal(tenant, open_card(tenant), approver) == "owner_required"


def test_policy_for_owners_lets_an_approver_decline(tenant: Any, approver: Any) -> None:
    policy(tenant, who=Deciders.OWNERS)
    decision = answer(tenant, open_card(tenant), approver, DECLINED)
    assert decision is not None


def test_policy_of_another_tenant_changes_nothing(tenant: Any, other_tenant: Any, approver: Any) -> None:
    policy(other_tenant, who=Deciders.OWNERS)
    assert answer(tenant, open_card(tenant), approver) is not None


def test_policy_of_another_risk_changes_nothing(tenant: Any, approver: Any) -> None:
    policy(tenant, who=Deciders.OWNERS, risk=Risk.IRREVERSIBLE)
    assert answer(tenant, open_card(tenant), approver) is not None


def test_policy_for_irreversible_asks_two_people(tenant: Any, owner: Any) -> None:
    policy(tenant, people=2, risk=Risk.IRREVERSIBLE)
    grave = open_card(tenant, declared_risk=Risk.HIGH, reversible=False)
    assert grave.risk == Risk.IRREVERSIBLE
    assert answer(tenant, grave, owner) is None


def test_own_request_cannot_be_approved(tenant: Any, owner: Any) -> None:
    assert refusal(tenant, open_card(tenant, requested_by=f"user:{owner.pk}"), owner) == "own_request"


def test_own_request_can_be_declined(tenant: Any, owner: Any) -> None:
    assert answer(tenant, open_card(tenant, requested_by=f"user:{owner.pk}"), owner, DECLINED) is not None


def test_request_of_another_member_can_be_approved(tenant: Any, owner: Any, approver: Any) -> None:
    assert answer(tenant, open_card(tenant, requested_by=f"user:{approver.pk}"), owner) is not None


def test_own_request_can_be_approved_where_policy_says_so(tenant: Any, owner: Any) -> None:
    policy(tenant, own_requests=True)
    assert answer(tenant, open_card(tenant, requested_by=f"user:{owner.pk}"), owner) is not None


def test_without_a_policy_one_approver_is_enough(tenant: Any, approver: Any) -> None:
    assert answer(tenant, open_card(tenant), approver) is not None


def test_same_policy_twice_is_refused(tenant: Any) -> None:
    policy(tenant, risk=Risk.HIGH)
    with pytest.raises(IntegrityError):
        policy(tenant, risk=Risk.HIGH)


@pytest.mark.parametrize("people", [0, 6])
def test_policy_with_an_impossible_number_is_refused(tenant: Any, people: int) -> None:
    with pytest.raises(IntegrityError):
        policy(tenant, people=people)


ANY, SCOPE, RISK = Policy(people=1), Policy(scope="full_plan", people=2), Policy(risk="high", people=3)
BOTH = Policy(scope="full_plan", risk="high", people=4)


@pytest.mark.parametrize(
    ("fitting", "best"),
    [([], 1), ([ANY], 1), ([ANY, SCOPE], 2), ([RISK, ANY], 3), ([RISK, SCOPE], 2), ([SCOPE, BOTH, ANY, RISK], 4)],
)
def test_best_policy_is_the_one_that_says_most(fitting: list[Policy], best: int) -> None:
    assert rules.most_specific_policy(fitting).people == best


@pytest.mark.parametrize(
    ("rule", "risk", "has_one", "wanted"),
    [
        (PasskeyRule.REGISTERED, Risk.MEDIUM, True, False),
        (PasskeyRule.REGISTERED, Risk.HIGH, False, False),
        (PasskeyRule.REGISTERED, Risk.HIGH, True, True),
        (PasskeyRule.REGISTERED, Risk.IRREVERSIBLE, True, True),
        (PasskeyRule.REQUIRED, Risk.LOW, False, True),
    ],
)
def test_passkey_is_wanted_by_rule_and_risk(rule: PasskeyRule, risk: Risk, has_one: bool, wanted: bool) -> None:
    assert rules.needs_passkey(Policy(passkey=rule), risk, has_one=has_one) is wanted


# --- conditions


def test_approval_with_conditions_is_refused(tenant: Any, owner: Any) -> None:
    assert refusal(tenant, open_card(tenant), owner, conditions={"max": 5}) == "conditions_not_allowed"


def test_conditional_answer_without_conditions_is_refused(tenant: Any, owner: Any) -> None:
    assert refusal(tenant, open_card(tenant), owner, ApprovalVerdict.CONDITIONAL) == "conditions_missing"


def test_conditional_answer_is_signed_with_its_conditions(tenant: Any, owner: Any) -> None:
    answer(tenant, open_card(tenant), owner, ApprovalVerdict.CONDITIONAL, conditions={"max": 5})
    with tenant_scope(tenant):
        row = Answer.objects.select_related("card").get()
        genuine = answers.is_genuine(row)
        row.conditions = {"max": 6}
        assert genuine is True
        assert answers.is_genuine(row) is False


def test_conditional_answer_opens_nothing(tenant: Any, owner: Any) -> None:
    answer(tenant, open_card(tenant), owner, ApprovalVerdict.CONDITIONAL, conditions={"max": 5})
    assert tokens(tenant) == 0


def test_card_whose_payload_is_not_its_scope_s_is_refused(tenant: Any) -> None:
    with pytest.raises(SilasError) as refused:
        open_card(tenant, scope=ApprovalScope.AUTONOMY_THRESHOLD)
    assert refused.value.code in ("payload_shape", "card_scope_unfit")


def test_member_of_another_tenant_does_not_count(tenant: Any, other_tenant: Any, two: Any, owner: Any) -> None:
    foreign = make_member(other_tenant, "owner")
    card = open_card(tenant)
    answer(tenant, card, owner)
    assert refusal(tenant, card, foreign) == "approver_required"
