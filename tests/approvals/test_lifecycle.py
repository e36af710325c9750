"""Does a card take only the ways that there are, whoever pushes it? Its course, its end, and who sees to it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import Error as DatabaseError
from hypothesis import settings as budget
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from apps.approvals import queries
from apps.approvals.cards.lifecycle import (
    assign_card,
    expire_card,
    record_look,
    unassign_card,
    withdraw_card,
    withdraw_cards_about,
    withdraw_session_cards,
)
from apps.approvals.cards.services import decide_card
from apps.approvals.enums import ApprovalVerdict, CardKind, CardStatus, Withdrawal
from apps.approvals.models import ApprovalToken, Card, Decision, Look
from apps.audit.models import AuditEntry
from kernel.clock import now
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.approvals import expire_cards, open_card
from tests.factories.cards import make_kind
from tests.factories.tenants import make_member
from tests.rivals import race

WAITS = (CardStatus.OPEN, CardStatus.ASSIGNED)


def run_out(card: Card) -> None:
    """Let the time of a waiting card be up."""
    with tenant_scope(card.tenant_id):
        begun = now() - timedelta(hours=2)
        Card.objects.filter(pk=card.pk).update(created_at=begun, expires_at=begun + timedelta(minutes=5))


def stored(card: Card) -> Card:
    with tenant_scope(card.tenant_id):
        return queries.get_card(card.pk)


def call(card: Card, step: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The step about this card, in its tenant; a refusal is returned."""
    try:
        with tenant_scope(card.tenant_id):
            return step(card.pk, *args, **kwargs)
    except SilasError as refused:
        return refused


def test_card_begins_open_and_with_nobody(tenant: Any) -> None:
    card = open_card(tenant)
    assert card.status == CardStatus.OPEN
    assert card.assignee is None
    assert card.settled_at is None


def test_assigned_card_names_who_sees_to_it(tenant: Any, owner: Any, approver: Any) -> None:
    card = open_card(tenant)
    call(card, assign_card, to=approver, by=owner)
    found = stored(card)
    assert found.status == CardStatus.ASSIGNED
    assert found.assignee == approver


def test_assigned_card_still_waits_in_the_queue(tenant: Any, owner: Any) -> None:
    card = open_card(tenant)
    call(card, assign_card, to=owner, by=owner)
    with tenant_scope(tenant):
        assert list(queries.open_cards()) == [card]


def test_assigned_card_is_decided_by_anybody_who_may(tenant: Any, owner: Any, approver: Any) -> None:
    card = open_card(tenant)
    call(card, assign_card, to=approver, by=owner)
    assert call(card, decide_card, user=owner, verdict=ApprovalVerdict.APPROVED).user == owner


def test_unassigned_card_is_everybodys_again(tenant: Any, owner: Any, approver: Any) -> None:
    card = open_card(tenant)
    call(card, assign_card, to=approver, by=owner)
    call(card, unassign_card, by=approver)
    assert stored(card).status == CardStatus.OPEN
    assert stored(card).assignee is None


@pytest.mark.parametrize("role", ["agent", "viewer", "stranger"])
def test_card_is_assigned_by_nobody_who_could_not_decide(tenant: Any, owner: Any, role: str, request: Any) -> None:
    refused = call(open_card(tenant), assign_card, to=owner, by=request.getfixturevalue(role))
    assert refused.code == "approver_required"


@pytest.mark.parametrize("role", ["agent", "viewer", "stranger"])
def test_card_is_assigned_to_nobody_who_could_not_decide(tenant: Any, owner: Any, role: str, request: Any) -> None:
    refused = call(open_card(tenant), assign_card, to=request.getfixturevalue(role), by=owner)
    assert refused.code == "assignee_unfit"


def test_card_is_not_assigned_to_the_owner_of_another_tenant(tenant: Any, other_tenant: Any, owner: Any) -> None:
    foreign = make_member(other_tenant, "owner")
    assert call(open_card(tenant), assign_card, to=foreign, by=owner).code == "assignee_unfit"


def test_card_of_another_tenant_is_not_assigned(tenant: Any, other_tenant: Any, owner: Any) -> None:
    card = open_card(other_tenant)
    with tenant_scope(tenant), pytest.raises(SilasError) as refused:
        assign_card(card.pk, to=owner, by=owner)
    assert refused.value.status == 404


def test_card_of_another_tenant_is_not_withdrawn(tenant: Any, other_tenant: Any) -> None:
    card = open_card(other_tenant)
    with tenant_scope(tenant), pytest.raises(SilasError) as refused:
        withdraw_card(card.pk, reason=Withdrawal.STAFF)
    assert refused.value.status == 404
    assert stored(card).status == CardStatus.OPEN


def test_withdrawn_card_says_why_and_when(tenant: Any) -> None:
    card = open_card(tenant)
    call(card, withdraw_card, reason=Withdrawal.REQUESTER)
    found = stored(card)
    assert found.status == "withdrawn"
    assert found.withdrawal == "requester"
    assert found.settled_at is not None


def test_withdrawn_card_is_not_decided(tenant: Any, owner: Any) -> None:
    card = open_card(tenant)
    call(card, withdraw_card, reason=Withdrawal.REQUESTER)
    assert call(card, decide_card, user=owner, verdict=ApprovalVerdict.APPROVED).code == "card_withdrawn"


def test_decided_card_is_not_withdrawn(tenant: Any, owner: Any) -> None:
    card = open_card(tenant)
    call(card, decide_card, user=owner, verdict=ApprovalVerdict.DECLINED)
    assert call(card, withdraw_card, reason=Withdrawal.STAFF).code == "card_decided"


def test_withdrawal_of_a_conversation_leaves_the_others_alone(tenant: Any) -> None:
    session = uuid4()
    mine, other = open_card(tenant, session_id=session), open_card(tenant, session_id=uuid4())
    with tenant_scope(tenant):
        assert withdraw_session_cards(session, reason=Withdrawal.HANDOFF) == 1
    assert [stored(mine).status, stored(other).status] == [CardStatus.WITHDRAWN, CardStatus.OPEN]


@pytest.mark.parametrize("kind", [CardKind.POST_EXECUTION, CardKind.SUGGESTION])
def test_withdrawal_of_a_conversation_leaves_what_only_offers(tenant: Any, kind: CardKind) -> None:
    """What was done can still be undone, whoever answers in the conversation now."""
    session = uuid4()
    offer = make_kind(tenant, kind, session_id=session)
    with tenant_scope(tenant):
        withdraw_session_cards(session, reason=Withdrawal.HANDOFF)
    assert stored(offer).status == CardStatus.OPEN


def test_withdrawal_about_a_subject_without_cards_is_fine(tenant: Any) -> None:
    with tenant_scope(tenant):
        assert withdraw_cards_about("work_item", uuid4(), reason=Withdrawal.CANCELLED) == 0


def test_rivals_who_decide_and_withdraw_settle_a_card_once(tenant: Any, owner: Any) -> None:
    card = open_card(tenant)
    answers = race(
        lambda: call(card, decide_card, user=owner, verdict=ApprovalVerdict.APPROVED),
        lambda: call(card, withdraw_card, reason=Withdrawal.REQUESTER),
    )
    assert sum(isinstance(answer, SilasError) for answer in answers) == 1


@pytest.mark.parametrize("assigned", [False, True])
def test_card_whose_time_is_up_ends_without_an_approval(tenant: Any, owner: Any, assigned: bool) -> None:
    card = open_card(tenant)
    if assigned:
        call(card, assign_card, to=owner, by=owner)
    run_out(card)
    expire_cards(tenant)
    with tenant_scope(tenant):
        ended = (queries.get_card(card.pk).status, Decision.objects.exists(), ApprovalToken.objects.exists())
    assert ended == (CardStatus.EXPIRED, False, False)


def test_card_whose_time_is_up_is_not_assigned(tenant: Any, owner: Any) -> None:
    card = open_card(tenant)
    run_out(card)
    assert call(card, assign_card, to=owner, by=owner).code == "card_expired"


@pytest.mark.parametrize("move", [{"status": "open"}, {"withdrawal": "staff"}, {"expires_at": now() + timedelta(1)}])
def test_settled_card_is_not_moved_around_the_service(tenant: Any, move: dict[str, Any]) -> None:
    card = open_card(tenant)
    call(card, withdraw_card, reason=Withdrawal.REQUESTER)
    with pytest.raises(DatabaseError), tenant_scope(tenant):
        Card.objects.filter(pk=card.pk).update(**move)


UNFIT = [
    {"status": "assigned"},
    {"status": "decided"},
    {"status": "withdrawn", "settled_at": now()},
    {"withdrawal": "staff"},
    {"settled_at": now()},
]


@pytest.mark.parametrize("move", UNFIT)
def test_half_a_move_is_refused_by_the_database(tenant: Any, move: dict[str, Any]) -> None:
    card = open_card(tenant)
    with pytest.raises(DatabaseError), tenant_scope(tenant):
        Card.objects.filter(pk=card.pk).update(**move)


def test_open_card_has_nobody_says_the_database(tenant: Any, owner: Any) -> None:
    card = open_card(tenant)
    with pytest.raises(DatabaseError), tenant_scope(tenant):
        Card.objects.filter(pk=card.pk).update(assignee=owner, assigned_at=now())


def test_card_that_begins_decided_is_refused_by_the_database(tenant: Any) -> None:
    card = open_card(tenant)
    card.pk, card.subject_id, card.status, card.settled_at = uuid4(), uuid4(), CardStatus.DECIDED, now()
    with pytest.raises(DatabaseError), tenant_scope(tenant):
        card.save(force_insert=True)


def test_assigned_card_keeps_a_second_one_about_its_subject_away(tenant: Any, owner: Any) -> None:
    subject = uuid4()
    card = open_card(tenant, subject_id=subject)
    call(card, assign_card, to=owner, by=owner)
    with pytest.raises(DatabaseError):
        open_card(tenant, subject_id=subject)


def test_look_at_a_card_is_written_down_once_a_person(tenant: Any, owner: Any, approver: Any) -> None:
    card = open_card(tenant)
    with tenant_scope(tenant):
        for user in (owner, owner, approver):
            record_look(card, user)
        assert Look.objects.filter(card=card).count() == 2


def test_look_at_a_settled_card_is_not_written_down(tenant: Any, owner: Any) -> None:
    card = open_card(tenant)
    call(card, withdraw_card, reason=Withdrawal.STAFF)
    with tenant_scope(tenant):
        record_look(queries.get_card(card.pk), owner)
        assert not Look.objects.exists()


def test_look_cannot_be_rewritten(tenant: Any, owner: Any) -> None:
    card = open_card(tenant)
    with tenant_scope(tenant):
        record_look(card, owner)
    with pytest.raises(DatabaseError), tenant_scope(tenant):
        Look.objects.update(first_at=now())


def test_course_of_a_card_is_written_down_without_words(tenant: Any, owner: Any, approver: Any) -> None:
    card = open_card(tenant)
    call(card, assign_card, to=approver, by=owner)
    call(card, unassign_card, by=owner)
    call(card, withdraw_card, reason=Withdrawal.STAFF, actor=f"user:{owner.pk}")
    with tenant_scope(tenant):
        entries = list(AuditEntry.objects.filter(subject=f"card:{card.pk}").values_list("event", "data"))
    assert [event for event, _ in entries] == ["card_opened", "card_assigned", "card_assigned", "card_withdrawn"]
    assert not any(card.intent in data for _, data in entries)


class Course(RuleBasedStateMachine):
    """One card, pushed by everybody at will; `expected` is what the words of the specification make of it."""

    def __init__(self, tenant: Any, deciders: list[Any], others: list[Any]) -> None:
        super().__init__()
        self.deciders, self.others = deciders, others
        self.card = open_card(tenant)
        self.expected = CardStatus.OPEN
        self.is_late = False

    def push(self, step: Callable[..., Any], allowed: bool, becomes: CardStatus, **kwargs: Any) -> None:
        """The step succeeds when, and only when, it is allowed to a card that still waits."""
        done = call(self.card, step, **kwargs)
        may = allowed and self.expected in WAITS and not self.is_late
        assert isinstance(done, SilasError) is not may, (done, self.expected)
        self.expected = becomes if may else self.expected

    @rule(by=st.integers(0, 3), to=st.integers(0, 3))
    def assign(self, by: int, to: int) -> None:
        people = [*self.deciders, *self.others]
        allowed = by < len(self.deciders) and to < len(self.deciders)
        self.push(assign_card, allowed, CardStatus.ASSIGNED, to=people[to], by=people[by])

    @rule(by=st.integers(0, 3))
    def unassign(self, by: int) -> None:
        people = [*self.deciders, *self.others]
        self.push(unassign_card, by < len(self.deciders), CardStatus.OPEN, by=people[by])

    @rule(by=st.integers(0, 3), verdict=st.sampled_from([ApprovalVerdict.APPROVED, ApprovalVerdict.DECLINED]))
    def decide(self, by: int, verdict: ApprovalVerdict) -> None:
        people = [*self.deciders, *self.others]
        allowed = by < len(self.deciders)
        self.push(decide_card, allowed, CardStatus.DECIDED, user=people[by], verdict=verdict)

    @rule(reason=st.sampled_from(Withdrawal))
    def withdraw(self, reason: Withdrawal) -> None:
        self.push(withdraw_card, True, CardStatus.WITHDRAWN, reason=reason)

    @precondition(lambda self: self.expected in WAITS)
    @rule()
    def grow_late(self) -> None:
        run_out(self.card)
        self.is_late = True

    @rule()
    def sweep(self) -> None:
        call(self.card, expire_card)
        if self.is_late and self.expected in WAITS:
            self.expected = CardStatus.EXPIRED

    @invariant()
    def card_is_where_it_should_be(self) -> None:
        found = stored(self.card)
        assert found.status == self.expected
        assert (found.settled_at is None) is (self.expected in WAITS)
        with tenant_scope(self.card.tenant_id):
            verdicts = list(Decision.objects.filter(card=self.card).values_list("verdict", flat=True))
            tokens = ApprovalToken.objects.filter(decision__card=self.card).count()
        assert len(verdicts) == (self.expected == CardStatus.DECIDED)
        assert tokens == verdicts.count("approved")


def test_card_takes_only_the_ways_that_there_are(
    tenant: Any, owner: Any, approver: Any, agent: Any, viewer: Any
) -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        lambda: Course(tenant, [owner, approver], [agent, viewer]),
        settings=budget(max_examples=40, stateful_step_count=12, deadline=None),
    )
