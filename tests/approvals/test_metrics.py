"""Are the numbers right, of this tenant only, and without any power over what is decided?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connections

from apps.approvals.cards import kinds, metrics
from apps.approvals.cards.lifecycle import record_look
from apps.approvals.cards.schemas import AnswerDetails
from apps.approvals.cards.services import answer_card
from apps.approvals.enums import CardKind, Risk
from apps.approvals.models import Card, Decision, Look
from apps.approvals.queries import face_hash
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.approvals import expire_cards, open_card
from tests.factories.cards import make_kind
from tests.factories.tenants import make_member

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
WEEK = timedelta(days=7)


def decided(tenant: Any, user: Any, *, seconds: float | None = 3, choice: str = kinds.APPROVE, **fields: Any) -> Card:
    """A card that this person looked at for so long before they answered it."""
    kind = fields.pop("kind", None)
    card = make_kind(tenant, kind, **fields) if kind else open_card(tenant, **fields)
    with tenant_scope(tenant):
        if seconds is not None:
            Look.objects.create(card=card, user=user, first_at=now() - timedelta(seconds=seconds))
        answer_card(card.pk, user=user, choice=choice, face=face_hash(card))
    return card


def totals(tenant: Any, since: datetime = LONG_AGO) -> metrics.Totals:
    with tenant_scope(tenant):
        return metrics.totals(since)


def test_tenant_without_decisions_has_no_rates(tenant: Any) -> None:
    found = totals(tenant)
    assert found.decisions == 0
    assert found.median is None
    assert found.declined is None
    assert found.undone is None
    assert found.corrected is None


def test_median_time_is_that_of_the_decisions(tenant: Any, owner: Any) -> None:
    for seconds in (2, 8, 90):
        decided(tenant, owner, seconds=seconds)
    assert totals(tenant).median == pytest.approx(8, abs=1)


def test_decision_that_nobody_was_seen_looking_at_has_no_time(tenant: Any, owner: Any) -> None:
    decided(tenant, owner, seconds=None)
    assert totals(tenant).decisions == 1
    assert totals(tenant).median is None


def test_time_of_a_decision_is_that_of_who_decided(tenant: Any, owner: Any, approver: Any) -> None:
    card = open_card(tenant)
    with tenant_scope(tenant):
        Look.objects.create(card=card, user=approver, first_at=now() - timedelta(seconds=200))
        Look.objects.create(card=card, user=owner, first_at=now() - timedelta(seconds=4))
        answer_card(card.pk, user=owner, choice=kinds.APPROVE, face=face_hash(card))
    assert totals(tenant).median == pytest.approx(4, abs=1)


def test_rungs_are_told_apart(tenant: Any, owner: Any) -> None:
    decided(tenant, owner, seconds=2, kind=CardKind.GATE)
    decided(tenant, owner, seconds=10)
    with tenant_scope(tenant):
        found = metrics.by_risk(LONG_AGO)
    assert [(rung.risk, rung.decisions) for rung in found] == [("low", 1), ("medium", 1)]


def test_decline_rate_is_the_share_of_noes(tenant: Any, owner: Any) -> None:
    for choice in (kinds.APPROVE, kinds.APPROVE, kinds.APPROVE, kinds.DECLINE):
        decided(tenant, owner, choice=choice)
    assert totals(tenant).declined == 0.25


def test_leaving_what_ran_alone_is_no_decline(tenant: Any, owner: Any) -> None:
    decided(tenant, owner)
    decided(tenant, owner, kind=CardKind.POST_EXECUTION, choice=kinds.DECLINE)
    assert totals(tenant).declined == 0


def test_undo_rate_is_the_share_of_what_could_be_undone(tenant: Any, owner: Any) -> None:
    decided(tenant, owner, kind=CardKind.POST_EXECUTION, choice=kinds.APPROVE)
    for _ in range(3):
        make_kind(tenant, CardKind.POST_EXECUTION)
    assert totals(tenant).undone == 0.25


def test_correction_rate_counts_edits_declines_and_undos(tenant: Any, owner: Any) -> None:
    decided(tenant, owner, kind=CardKind.DRAFT_REVIEW, choice="rephrase")
    decided(tenant, owner, choice=kinds.DECLINE)
    for _ in range(4):
        decided(tenant, owner)
    decided(tenant, owner, kind=CardKind.POST_EXECUTION, choice=kinds.APPROVE)
    assert totals(tenant).corrected == 0.5


def test_family_of_a_call_is_its_tool(tenant: Any, owner: Any) -> None:
    decided(tenant, owner, kind=CardKind.DRAFT_REVIEW)
    decided(tenant, owner, kind=CardKind.DRAFT_REVIEW, choice=kinds.DECLINE)
    with tenant_scope(tenant):
        (found,) = metrics.by_family(LONG_AGO)
    assert found.name == "send_letter"
    assert found.total == 2
    assert found.declines == 1
    assert found.rate == 0.5


def test_free_text_is_counted(tenant: Any, owner: Any) -> None:
    card = make_kind(tenant, CardKind.DECISION)
    with tenant_scope(tenant):
        answer_card(
            card.pk,
            user=owner,
            choice="old",
            face=face_hash(card),
            details=AnswerDetails(freetext="She moves back."),
        )
    decided(tenant, owner)
    assert totals(tenant).freetext == 0.5


def test_cards_nobody_answered_are_counted(tenant: Any) -> None:
    late = open_card(tenant)
    with tenant_scope(tenant):
        Card.objects.filter(pk=late.pk).update(created_at=now() - WEEK, expires_at=now() - timedelta(seconds=1))
    expire_cards(tenant)
    assert totals(tenant).expired == 1


def test_batch_approved_at_once_takes_two_taps(tenant: Any, owner: Any) -> None:
    decided(tenant, owner, kind=CardKind.BATCH_REVIEW)
    assert totals(tenant).taps_per_batch == 2


def test_batch_with_a_tick_changed_takes_a_tap_more_each(tenant: Any, owner: Any) -> None:
    """T-2 is unusual and not ticked; T-4 is left out by hand: one tick, one press to ask anew, two to approve."""
    card = make_kind(tenant, CardKind.BATCH_REVIEW)
    with tenant_scope(tenant):
        words = AnswerDetails(selected=["T-1", "T-3"])
        new = answer_card(card.pk, user=owner, choice="edit_selection", face=face_hash(card), details=words)
        answer_card(new.pk, user=owner, choice=kinds.APPROVE, face=face_hash(new))
    assert totals(tenant).taps_per_batch == 4


@pytest.mark.parametrize(("days", "count"), [(1, 1), (-1, 0)])
def test_only_the_time_asked_about_counts(tenant: Any, owner: Any, days: int, count: int) -> None:
    decided(tenant, owner)
    assert totals(tenant, since=now() - timedelta(days=days)).decisions == count


def test_other_tenants_decisions_are_not_counted(tenant: Any, other_tenant: Any) -> None:
    decided(other_tenant, make_member(other_tenant, "owner"))
    assert totals(tenant).decisions == 0


def test_every_day_is_told_quiet_ones_too(tenant: Any, owner: Any) -> None:
    decided(tenant, owner, choice=kinds.DECLINE)
    with tenant_scope(tenant):
        found = metrics.by_day(now() - timedelta(days=2), now(), zone="UTC")
    assert [(day.decided, day.declined) for day in found] == [(0, 0), (0, 0), (1, 1)]


def test_spread_sorts_decisions_by_how_long_they_took(tenant: Any, owner: Any) -> None:
    for seconds in (0.2, 3, 10, 20, 90):
        decided(tenant, owner, seconds=seconds)
    with tenant_scope(tenant):
        assert metrics.decision_time_histogram(LONG_AGO) == (1, 1, 1, 1, 1)


def hasty(tenant: Any, user: Any) -> bool:
    with tenant_scope(tenant):
        return metrics.is_hasty(user.pk, now())


def test_ten_grave_decisions_in_a_flash_are_a_cue(tenant: Any, owner: Any) -> None:
    for _ in range(metrics.HASTY_WINDOW):
        decided(tenant, owner, seconds=0.3)
    assert hasty(tenant, owner) is True
    assert totals(tenant).fatigue_triggers == 1


def test_nine_are_none(tenant: Any, owner: Any) -> None:
    for _ in range(metrics.HASTY_WINDOW - 1):
        decided(tenant, owner, seconds=0.3)
    assert hasty(tenant, owner) is False
    assert totals(tenant).fatigue_triggers == 0


def test_light_decisions_in_a_flash_are_none(tenant: Any, owner: Any) -> None:
    for _ in range(metrics.HASTY_WINDOW):
        decided(tenant, owner, seconds=0.3, kind=CardKind.GATE)
    assert not hasty(tenant, owner)


def test_pace_of_a_colleague_is_not_mine(tenant: Any, owner: Any, approver: Any) -> None:
    for _ in range(metrics.HASTY_WINDOW):
        decided(tenant, approver, seconds=0.3)
    assert not hasty(tenant, owner)


def test_habit_that_lasts_is_one_trigger(tenant: Any, owner: Any) -> None:
    for _ in range(metrics.HASTY_WINDOW + 3):
        decided(tenant, owner, seconds=0.3)
    assert totals(tenant).fatigue_triggers == 1


def test_hasty_person_is_neither_held_up_nor_refused(tenant: Any, owner: Any) -> None:
    """Spec 0.5.4: cues only. The fiftieth card in a row is decided like the first, at once."""
    cards = [open_card(tenant) for _ in range(50)]
    with tenant_scope(tenant):
        for card in cards:
            record_look(card, owner)
            answer_card(card.pk, user=owner, choice=kinds.APPROVE, face=face_hash(card))
        assert Decision.objects.filter(verdict="approved").count() == 50
    assert hasty(tenant, owner)


@pytest.mark.parametrize("risk", [Risk.LOW, Risk.IRREVERSIBLE])
def test_time_alone_approves_nothing(tenant: Any, risk: Risk) -> None:
    card = open_card(tenant, declared_risk=risk)
    with tenant_scope(tenant):
        Card.objects.filter(pk=card.pk).update(created_at=now() - WEEK, expires_at=now() - timedelta(seconds=1))
    expire_cards(tenant)
    with tenant_scope(tenant):
        assert Card.objects.get(pk=card.pk).status == "expired"
        assert not Decision.objects.exists()


def test_numbers_are_read_within_row_security(tenant: Any, other_tenant: Any) -> None:
    """The statements name the tenant, and the database would not show them another's rows anyway."""
    decided(other_tenant, make_member(other_tenant, "owner"))
    with tenant_scope(tenant), connections["default"].cursor() as cursor:
        cursor.execute("SELECT count(*) FROM approvals_decision")
        assert cursor.fetchone() == (0,)
