"""What is said repeatedly is promoted inside its scope, without gaining trust; a profile needs a person (spec 6.4)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.approvals.enums import CardStatus
from apps.approvals.models import Card
from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.memory import consolidation, memories, promotion
from apps.memory.enums import ArchiveReason, QuestionState, SourceKind, Tier, Trust
from apps.memory.models import MemoryConsolidation, MemoryItem, MemoryQuestion
from apps.memory.rules import Event, Level, next_level, parse_event
from kernel.clock import now
from kernel.taint import Taint, join
from kernel.tenancy import tenant_scope
from llm.enums import MemoryType
from tests.factories.memories import conversation, customer, note, recalled, remember, say, say_often
from tests.factories.proposals import press

CAT, QUESTION = "The cat is called Whiskers", "What is the cat called?"
MINE = customer("C-1")
RAW: dict[str, Any] = {"source_kind": SourceKind.CONVERSATION_RAW, "tier": Tier.LOW_REINGESTION}


def promote(tenant: Any) -> int:
    """Raise all groups by one level."""
    with tenant_scope(tenant):
        return promotion.promote(promotion.find_promotable())


def run(tenant: Any) -> None:
    """What the job does: merge, then promote until nothing is left to do."""
    with tenant_scope(tenant):
        consolidation.merge(consolidation.find_duplicates())
    while promote(tenant):
        pass


def active(tenant: Any) -> list[tuple[str, str]]:
    with tenant_scope(tenant):
        rows = MemoryItem.objects.filter(scope=str(MINE), tier=Tier.ACTIVE, archived_at__isnull=True)
        return sorted(rows.values_list("memory_type", "content"))


def only(tenant: Any) -> MemoryItem:
    with tenant_scope(tenant):
        row: MemoryItem = MemoryItem.objects.get(archived_at__isnull=True, tier=Tier.ACTIVE)
    return row


@pytest.fixture
def question(tenant: Any) -> MemoryQuestion:
    """A fact that was said often enough for the profile, asked about."""
    say_often(tenant, MINE, CAT, 5, memory_type=MemoryType.FACT)
    run(tenant)
    with tenant_scope(tenant):
        asked: MemoryQuestion = MemoryQuestion.objects.get()
    return asked


# -- what must not be promoted ---------------------------------------------------------------------------------------


def test_memories_of_another_tenant_are_untouched(tenant: Any, other_tenant: Any) -> None:
    rows = say_often(other_tenant, MINE, CAT, 5)
    assert promote(tenant) == 0
    with tenant_scope(tenant):
        assert promotion.promote([[row.pk for row in rows]]) == 0
    assert active(other_tenant) == [("episode", CAT)] * 5


def test_customers_do_not_add_up(tenant: Any) -> None:
    for number in range(5):
        say(tenant, customer(f"C-{number}"), CAT, days_ago=number * 3)
    assert promote(tenant) == 0


def test_what_was_written_after_reading_instructions_is_not_promoted(tenant: Any) -> None:
    say_often(tenant, MINE, CAT, 5, marked=True)
    assert promote(tenant) == 0


def test_one_conversation_counts_once_however_often_the_model_asks(tenant: Any) -> None:
    wish = note(MINE, CAT, session_id=uuid4())
    with tenant_scope(tenant):
        assert all(memories.store(wish) for _ in range(10))
    run(tenant)
    assert active(tenant) == [("episode", CAT)]


def test_expired_and_archived_memories_do_not_count(tenant: Any) -> None:
    say(tenant, MINE, CAT, days_ago=9, valid_until=now() - timedelta(seconds=1))
    say(tenant, MINE, CAT, days_ago=8, archived_at=now(), archive_reason=ArchiveReason.STAFF)
    say(tenant, MINE, CAT, days_ago=7)
    assert promote(tenant) == 0


@pytest.mark.parametrize("text", ["Hello", "Thanks a lot!", "Where is my order with the blue shoes?"])
def test_greetings_and_questions_are_not_promoted(tenant: Any, text: str) -> None:
    say_often(tenant, conversation(), text, 4, **RAW)
    assert promote(tenant) == 0


@pytest.mark.parametrize("kind", [MemoryType.PREFERENCE, MemoryType.DECISION, MemoryType.SKILL_NOTE])
def test_other_types_keep_their_type(tenant: Any, kind: MemoryType) -> None:
    say_often(tenant, MINE, CAT, 6, memory_type=kind)
    run(tenant)
    assert active(tenant) == [(kind.value, CAT)]


def test_model_cannot_make_a_profile(tenant: Any) -> None:
    with tenant_scope(tenant):
        assert memories.store(note(MINE, CAT, memory_type=MemoryType.PROFILE))
    assert active(tenant) == [("fact", CAT)]


def test_other_statement_adds_nothing(tenant: Any) -> None:
    say(tenant, MINE, "The limit is 3", days_ago=5)
    say(tenant, MINE, "The limit is 30", days_ago=3)
    say(tenant, MINE, "The limit isn't 3")
    assert promote(tenant) == 0


# -- how it is promoted ----------------------------------------------------------------------------------------------


def test_statement_that_a_visitor_repeats_becomes_an_episode_and_stays_as_said(tenant: Any) -> None:
    here = conversation()
    originals = say_often(tenant, here, CAT, 2, **RAW)
    assert promote(tenant) == 2
    kept = only(tenant)
    assert kept.scope == str(here)
    assert kept.memory_type == MemoryType.EPISODE
    assert kept.taint == Taint.EXTERNAL
    assert [link["to"] for link in kept.links] == [str(row.pk) for row in originals]
    with tenant_scope(tenant):
        raw = MemoryItem.objects.filter(tier=Tier.LOW_REINGESTION, archived_at__isnull=True)
        assert {row.pk for row in raw} == {row.pk for row in originals}
    assert promote(tenant) == 0


def test_episode_of_three_conversations_becomes_a_fact_and_the_log_says_so(tenant: Any) -> None:
    originals = say_often(tenant, MINE, CAT, 3)
    assert promote(tenant) == 3
    assert active(tenant) == [("fact", CAT)]
    kept = only(tenant)
    with tenant_scope(tenant):
        logged = MemoryConsolidation.objects.values_list("merged_id", "kept_id", "reason", "type_before", "type_after")
        assert set(logged) == {(row.pk, kept.pk, "promoted", "episode", "fact") for row in originals}
        assert AuditEntry.objects.filter(event=AuditEvent.MEMORIES_PROMOTED).count() == 1
        archived = MemoryItem.objects.filter(archive_reason=ArchiveReason.PROMOTED)
        assert {row.pk for row in archived} == {row.pk for row in originals}


def test_merged_duplicates_count_as_what_they_were(tenant: Any) -> None:
    say_often(tenant, MINE, CAT, 3)
    run(tenant)
    assert active(tenant) == [("fact", CAT)]


def test_promoted_memory_is_recalled_once(tenant: Any) -> None:
    for number in range(3):
        row = remember(tenant, MINE, CAT, reference=f"r:{number}", session_id=uuid4())
        with tenant_scope(tenant):
            earlier = Event(str(uuid4()), "wish", now() - timedelta(days=number * 2))
            MemoryItem.objects.filter(pk=row.pk).update(events=[str(earlier)])
    run(tenant)
    assert only(tenant).memory_type == "fact"
    assert recalled(tenant, [MINE], QUESTION) == [CAT]


def test_what_is_said_again_later_counts_for_the_promoted_memory(tenant: Any) -> None:
    wish = note(MINE, CAT, session_id=uuid4())
    say(tenant, MINE, CAT, days_ago=5, reference=wish.reference)
    say(tenant, MINE, CAT, days_ago=3)
    say(tenant, MINE, CAT, days_ago=1)
    assert promote(tenant) == 3
    before = len(only(tenant).events)
    with tenant_scope(tenant):
        assert memories.store(wish)
    assert len(only(tenant).events) == before + 1
    say(tenant, MINE, CAT)
    run(tenant)
    assert len(only(tenant).events) > before + 1


def test_model_that_rewords_a_fact_makes_an_episode_of_it(tenant: Any) -> None:
    say_often(tenant, MINE, CAT, 3)
    run(tenant)
    (ready,) = memories.prepare([note(MINE, "The cat is called Felix")])
    with tenant_scope(tenant):
        fact = MemoryItem.objects.get(archived_at__isnull=True)
        assert memories.update(str(fact.pk), ready, scopes=[MINE])
    assert active(tenant) == [("episode", "The cat is called Felix")]
    assert only(tenant).events == []


def test_second_run_finds_nothing(tenant: Any) -> None:
    say_often(tenant, MINE, CAT, 4)
    run(tenant)
    with tenant_scope(tenant):
        assert promotion.find_promotable() == []


def test_run_with_groups_of_a_former_run_changes_nothing(tenant: Any) -> None:
    say_often(tenant, MINE, CAT, 3)
    say_often(tenant, conversation(), CAT, 3, **RAW)
    with tenant_scope(tenant):
        groups = promotion.find_promotable()
        assert promotion.promote(groups) == 6
    with tenant_scope(tenant):
        assert promotion.promote(groups) == 0


# -- the profile -----------------------------------------------------------------------------------------------------


def test_nothing_becomes_profile_before_a_person_answers(tenant: Any, question: MemoryQuestion) -> None:
    assert active(tenant) == [("fact", CAT)]
    assert promote(tenant) == 0
    with tenant_scope(tenant):
        assert Card.objects.get(subject_id=question.pk).facts[0]["text"] == CAT


def test_answer_makes_a_profile_that_is_as_little_trusted(tenant: Any, question: MemoryQuestion, approver: Any) -> None:
    press(tenant, question.pk, approver, "keep")
    kept = only(tenant)
    assert kept.memory_type == "profile"
    assert kept.source_kind == SourceKind.KEPT_PROPOSAL
    assert kept.taint == Taint.EXTERNAL
    assert kept.trust == Trust.WORKING
    with tenant_scope(tenant):
        question.refresh_from_db()
        assert question.state == QuestionState.ANSWERED
        assert question.kept_id == kept.pk
        assert not memories.delete(str(kept.pk), scopes=[MINE])


def test_answer_about_what_is_not_external_confirms_it(tenant: Any, approver: Any) -> None:
    say_often(tenant, MINE, CAT, 5, memory_type=MemoryType.FACT, taint=Taint.AUTH)
    run(tenant)
    with tenant_scope(tenant):
        asked = MemoryQuestion.objects.get()
    press(tenant, asked.pk, approver, "keep")
    kept = only(tenant)
    assert kept.trust == Trust.VERIFIED
    assert kept.taint == Taint.AUTH


def test_dismissed_question_is_not_asked_again(tenant: Any, question: MemoryQuestion, approver: Any) -> None:
    press(tenant, question.pk, approver, "decline")
    say(tenant, MINE, CAT)
    run(tenant)
    assert active(tenant) == [("fact", CAT)]
    with tenant_scope(tenant):
        assert MemoryQuestion.objects.get().state == QuestionState.DISMISSED


def test_answer_about_a_text_that_changed_changes_nothing(tenant: Any, question: MemoryQuestion, approver: Any) -> None:
    with tenant_scope(tenant):
        MemoryItem.objects.filter(pk=question.memory_id).update(content="The cat is called Felix")
    press(tenant, question.pk, approver, "keep")
    assert active(tenant) == [("fact", "The cat is called Felix")]


def test_forgotten_customer_is_not_asked_about(tenant: Any, question: MemoryQuestion) -> None:
    with tenant_scope(tenant):
        memories.forget([MINE], actor="user:1", subject="session:1")
    with tenant_scope(tenant):
        question.refresh_from_db()
        assert question.state == QuestionState.DISMISSED
        assert Card.objects.get(subject_id=question.pk).status == CardStatus.WITHDRAWN


# -- the rules -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("level", "events", "conversations", "days", "following"),
    [
        (Level.RAW, 1, 1, 0, None),
        (Level.RAW, 2, 1, 0, Level.EPISODE),
        (Level.EPISODE, 3, 1, 9, None),
        (Level.EPISODE, 2, 2, 9, None),
        (Level.EPISODE, 3, 2, 0.9, None),
        (Level.EPISODE, 3, 2, 1, Level.FACT),
        (Level.FACT, 5, 3, 6, None),
        (Level.FACT, 4, 3, 7, None),
        (Level.FACT, 5, 2, 7, None),
        (Level.FACT, 5, 3, 7, Level.PROFILE),
        (Level.PROFILE, 50, 50, 300, None),
    ],
)
def test_table_of_levels(level: Level, events: int, conversations: int, days: float, following: Level | None) -> None:
    moment = now()
    rows = [
        Event(str(number % conversations), f"seq:{number}", moment + timedelta(days=days if number else 0))
        for number in range(events)
    ]
    assert next_level(level, rows) == following
    assert next_level(level, [*rows, *rows]) == following


@given(st.datetimes(min_value=datetime(2000, 1, 1)), st.text("abc:-0123", min_size=1))  # noqa: DTZ001
def test_event_is_read_as_it_was_written(moment: Any, reference: str) -> None:
    event = Event(str(UUID(int=0)), reference, moment.replace(microsecond=0, tzinfo=UTC))
    assert parse_event(str(event)) == event


_TEXTS = st.sampled_from([CAT, CAT + "!", "the cat is  called whiskers", "The dog is called Rex"])
_SAID = st.tuples(_TEXTS, st.sampled_from(Taint), st.sampled_from(["raw", "episode", "fact"]), st.integers(0, 20))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_SAID, min_size=1, max_size=9))
def test_no_path_raises_trust(tenant: Any, rows: list[tuple[str, Taint, str, int]]) -> None:
    with tenant_scope(tenant):
        MemoryItem.objects.filter(scope=str(MINE)).delete()
    before: dict[UUID, Taint] = {}
    for text, taint, level, days in rows:
        fields = RAW if level == "raw" else {"memory_type": level}
        before[say(tenant, MINE, text, days_ago=days, taint=taint, **fields).pk] = taint
        run(tenant)
    with tenant_scope(tenant):
        for row in MemoryItem.objects.filter(scope=str(MINE)):
            assert row.trust == Trust.WORKING
            assert row.memory_type != MemoryType.PROFILE
            sources = [before[UUID(link["to"])] for link in row.links if UUID(link["to"]) in before]
            assert not sources or join(Taint(row.taint), *sources) == row.taint
            if row.pk in before:
                assert join(Taint(row.taint), before[row.pk]) == row.taint
