"""Two confirmed memories that disagree are put before a person, who keeps one (spec 6.4)."""

from __future__ import annotations

from typing import Any

import pytest

from apps.approvals.models import Card
from apps.memory import disagreement, memories
from apps.memory.enums import ArchiveReason, QuestionState, SourceKind
from apps.memory.models import MemoryConsolidation, MemoryItem, MemoryQuestion
from apps.memory.schemas import Scope
from kernel.taint import Taint
from kernel.tenancy import tenant_scope
from tests.factories.memories import customer, say
from tests.factories.proposals import press

CAT, FELIX = "The cat is called Whiskers", "The cat is called Felix"
MINE = customer("C-1")


def keep(tenant: Any, text: str, *, scope: Scope = MINE, days_ago: float = 0, **fields: Any) -> MemoryItem:
    """A memory that a person kept."""
    usual = {"source_kind": SourceKind.KEPT_PROPOSAL, "taint": Taint.AUTH}
    return say(tenant, scope, text, days_ago=days_ago, **{**usual, **fields})


def ask(tenant: Any) -> int:
    with tenant_scope(tenant):
        return disagreement.ask_about_disagreements()


def left(tenant: Any) -> list[str]:
    with tenant_scope(tenant):
        return sorted(MemoryItem.objects.filter(archived_at__isnull=True).values_list("content", flat=True))


@pytest.fixture
def question(tenant: Any) -> MemoryQuestion:
    keep(tenant, CAT, days_ago=1)
    keep(tenant, FELIX)
    assert ask(tenant) == 1
    with tenant_scope(tenant):
        asked: MemoryQuestion = MemoryQuestion.objects.get()
    return asked


def test_memories_of_another_tenant_or_customer_are_not_compared(tenant: Any, other_tenant: Any) -> None:
    keep(tenant, CAT)
    keep(tenant, FELIX, scope=customer("C-2"))
    keep(other_tenant, FELIX)
    assert ask(tenant) == 0


def test_what_nobody_confirmed_is_not_asked_about(tenant: Any) -> None:
    keep(tenant, CAT)
    say(tenant, MINE, FELIX)
    assert ask(tenant) == 0


@pytest.mark.parametrize(("choice", "stays", "goes"), [("keep_older", CAT, FELIX), ("keep_newer", FELIX, CAT)])
def test_answer_keeps_one_and_archives_the_other(
    tenant: Any, question: MemoryQuestion, approver: Any, choice: str, stays: str, goes: str
) -> None:
    press(tenant, question.pk, approver, choice)
    assert left(tenant) == [stays]
    with tenant_scope(tenant):
        kept, gone = MemoryItem.objects.get(content=stays), MemoryItem.objects.get(content=goes)
        assert gone.archive_reason == ArchiveReason.CONTRADICTED
        log = MemoryConsolidation.objects.get()
        assert log.merged_id == gone.pk
        assert log.kept_id == kept.pk
        assert log.reason == "contradicted"
        question.refresh_from_db()
        assert question.state == QuestionState.ANSWERED
        assert question.kept_id == kept.pk


def test_pair_is_asked_about_once(tenant: Any, question: MemoryQuestion, approver: Any) -> None:
    assert ask(tenant) == 0
    press(tenant, question.pk, approver, "decline")
    assert left(tenant) == sorted([CAT, FELIX])
    assert ask(tenant) == 0


def test_answer_after_a_memory_changed_archives_nothing(tenant: Any, question: MemoryQuestion, approver: Any) -> None:
    with tenant_scope(tenant):
        MemoryItem.objects.filter(content=FELIX).update(content="The cat is called Tom")
    press(tenant, question.pk, approver, "keep_older")
    assert left(tenant) == sorted([CAT, "The cat is called Tom"])


def test_forgotten_memory_withdraws_the_question(tenant: Any, question: MemoryQuestion) -> None:
    with tenant_scope(tenant):
        memories.forget([MINE], actor="user:1", subject="session:1")
    with tenant_scope(tenant):
        assert Card.objects.get(subject_id=question.pk).status == "withdrawn"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (CAT, FELIX),
        ("Maria lives in Leeds", "Maria lives in York."),
        ("The bike is insured", "The bike isn't insured"),
        ("The bike is insured", "The bike is not insured"),
        ("Returns are accepted within 30 days of delivery", "Returns are accepted within 14 days of delivery"),
    ],
)
def test_statements_that_disagree(one: str, other: str) -> None:
    assert disagreement.disagree(one, other)
    assert disagreement.disagree(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (CAT, "the cat is called whiskers."),
        (CAT, "The dog is called Felix"),
        ("The cat is black", "The cat is old"),
        ("The bike isn't insured", "The bike is not insured"),
        ("Maria lives in Leeds", "Maria works at Leeds"),
    ],
)
def test_statements_that_agree(one: str, other: str) -> None:
    assert not disagreement.disagree(one, other)
