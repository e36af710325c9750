"""A pattern of decisions becomes a preference when a person keeps it; it changes no rule (spec 6.6)."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.autonomy.enums import ProposalState
from apps.memory.models import MemoryItem
from apps.suggestions.enums import OutcomeKind
from apps.suggestions.models import InitiativeSettings, Outcome, Preference
from apps.suggestions.preference_policy import LEAST, DecidedAction, infer_patterns
from apps.suggestions.services import preferences
from apps.work.queries import earned_thresholds, thresholds_of
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.proposals import press, recalled_memories, run_trusted_messages

DECLINED = DecidedAction("act", OutcomeKind.DECLINED)
APPROVED = DecidedAction("act", OutcomeKind.APPROVED)


def test_four_of_four_are_no_habit() -> None:
    assert infer_patterns([DECLINED] * 4) == []


@pytest.mark.parametrize(("declined", "approved", "keys"), [(6, 4, ["behavior:declined:act"]), (5, 4, []), (10, 7, [])])
def test_habit_is_three_of_five_at_least(declined: int, approved: int, keys: list[str]) -> None:
    assert [each.key for each in infer_patterns([DECLINED] * declined + [APPROVED] * approved)] == keys


def test_only_the_newest_twenty_count() -> None:
    assert infer_patterns([APPROVED] * 20 + [DECLINED] * 100) == []


def test_cut_drafts_speak_for_shorter_ones() -> None:
    found = infer_patterns([DecidedAction("act", OutcomeKind.EDIT_SELECTION, shortened=True)] * LEAST)
    assert "behavior:shorter" in [each.key for each in found]


@settings(max_examples=50)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(OutcomeKind), st.booleans()), max_size=60))
def test_whatever_people_do_a_pattern_has_its_evidence(rows: list[tuple[str, OutcomeKind, bool]]) -> None:
    for each in infer_patterns([DecidedAction(*row) for row in rows]):
        assert LEAST <= each.hits <= each.samples <= 20
        assert len(each.key) <= 120


@pytest.fixture
def habit(tenant: Any, deployment: Any) -> Preference:
    with tenant_scope(tenant):
        Outcome.objects.bulk_create(
            Outcome(deployment=deployment, family="act", subject_id=uuid4(), kind=OutcomeKind.DECLINED, risk="medium")
            for _ in range(6)
        )
        (row,) = preferences.propose_preferences(deployment.pk)
    return row


def test_habit_that_nobody_kept_is_not_recalled(tenant: Any, habit: Preference) -> None:
    run_trusted_messages(tenant)
    assert recalled_memories(tenant) == []


def test_kept_habit_is_recalled_as_confirmed(tenant: Any, habit: Preference, approver: Any) -> None:
    press(tenant, habit.pk, approver, "keep")
    run_trusted_messages(tenant)
    with tenant_scope(tenant):
        memory = MemoryItem.objects.get()
    assert memory.content == habit.content
    assert memory.memory_type == "preference"
    assert memory.trust == "verified"
    assert "behavior:declined:act" in memory.tags


def test_kept_habit_changes_no_threshold(tenant: Any, habit: Preference, deployment: Any, owner: Any) -> None:
    press(tenant, habit.pk, owner, "keep")
    with tenant_scope(tenant):
        assert earned_thresholds(deployment.pk, "act", earns=True) == thresholds_of(deployment.pk)


def test_dismissed_habit_is_not_inferred_again(tenant: Any, habit: Preference, deployment: Any, owner: Any) -> None:
    press(tenant, habit.pk, owner, "decline")
    with tenant_scope(tenant):
        assert preferences.propose_preferences(deployment.pk) == []


def test_kept_habit_can_be_dismissed_and_is_forgotten(tenant: Any, habit: Preference, owner: Any) -> None:
    press(tenant, habit.pk, owner, "keep")
    run_trusted_messages(tenant)
    with tenant_scope(tenant):
        row = preferences.dismiss(habit.pk, user=owner)
    assert row.state == ProposalState.DISMISSED
    assert recalled_memories(tenant) == []


def test_agent_keeps_nothing(tenant: Any, habit: Preference, agent: Any) -> None:
    with tenant_scope(tenant), pytest.raises(SilasError) as refusal:
        preferences.keep(habit.pk, user=agent)
    assert refusal.value.code == "forbidden_role"


def test_company_may_switch_inferring_off(tenant: Any, deployment: Any) -> None:
    with tenant_scope(tenant):
        InitiativeSettings.objects.create(preferences=False)
        Outcome.objects.bulk_create(
            Outcome(deployment=deployment, family="act", subject_id=uuid4(), kind=OutcomeKind.DECLINED, risk="medium")
            for _ in range(6)
        )
        assert preferences.propose_preferences(deployment.pk) == []
