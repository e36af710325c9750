"""Results of sessions, escalation, and goal checks as triggers (contract autonomy A8, C; spec 003)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from apps.audit.models import AuditEntry
from apps.autonomy import services
from apps.autonomy.enums import PrecedentState, SessionStatus, TriggerKind
from apps.autonomy.models import Notification, OpenQuestion, Precedent
from apps.autonomy.schemas import DraftPrecedent
from apps.autonomy.services import open_questions, session_results
from apps.guard.enums import TerminalReason
from apps.sessions.models import ChatSession
from apps.work.enums import WorkItemStatus, WorkReason
from apps.work.models import GoalCycle, WorkItem
from apps.work.services.items import move
from apps.work.signals import goal_checked
from kernel.clock import now
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.autonomy import RETURNS, House
from tests.factories.sessions import answered, make_session
from tests.factories.work import make_desk
from tests.rivals import race

SEEN = DraftPrecedent(pattern_kind="unanswered", summary="Nothing about parrots")


def precedents(house: House) -> list[tuple[str, int, str]]:
    with tenant_scope(house.tenant):
        return sorted(Precedent.objects.values_list("pattern_kind", "count", "state"))


def test_contract_precedent_seen_by_rivals_is_counted_once_each(house: House) -> None:
    sessions = [house.run_now(house.task()) for _ in range(4)]
    race(*[lambda each=each: house.do(session_results.record_precedent, each.pk, SEEN) for each in sessions])
    assert precedents(house) == [("unanswered", 4, "open")]


def test_precedent_that_another_attempt_sees_again_is_not_counted_up(house: House) -> None:
    session = house.run_now(house.task())
    for _ in range(2):
        house.do(session_results.record_precedent, session.pk, SEEN)
    assert precedents(house) == [("unanswered", 1, "open")]


def test_dismissed_precedent_makes_room_for_a_fresh_one(house: House) -> None:
    for _ in range(2):
        house.do(session_results.record_precedent, house.run_now(house.task()).pk, SEEN)
        with tenant_scope(house.tenant):
            Precedent.objects.update(state=PrecedentState.DISMISSED)
    assert [count for _, count, _ in precedents(house)] == [1, 1]


def test_contract_everything_written_says_where_it_comes_from(house: House, tmp_path: Path) -> None:
    house.know(tmp_path, returns=RETURNS)
    house.ask("Do you sell gift wrapping for parrots?")
    session = house.through(house.task(playbook="unanswered"))
    (row,) = house.proposals()
    assert row.task_id == session.task_id
    assert row.session_id == session.pk
    assert row.skills == []
    assert row.taint == "external"


def test_contract_audit_has_five_phase_transitions_less_the_first(house: House) -> None:
    session = house.through(house.task())
    with tenant_scope(house.tenant):
        rows = AuditEntry.objects.filter(subject=f"run:{session.run_id}", event="phase_transition")
        assert rows.count() == 4


def test_no_text_of_anybody_is_in_the_log(house: House, tmp_path: Path) -> None:
    house.know(tmp_path, returns=RETURNS)
    house.ask("Do you sell gift wrapping for parrots?")
    house.through(house.task(name="A very secret name", playbook="unanswered", route={"kind": "notify"}))
    with tenant_scope(house.tenant):
        said = " ".join(AuditEntry.objects.values_list("data", flat=True))
    assert "parrot" not in said
    assert "secret" not in said


def test_secret_in_a_question_is_taken_out_and_flagged(house: House) -> None:
    house.ask("Is my card 4111 1111 1111 1111 insured against parrots?")
    session = house.through(house.task(playbook="unanswered"))
    assert "4111" not in house.proposals()[0].content + house.proposals()[0].title
    assert any("needs attention" in each["title"] for each in house.receipt(session)["findings"])


def make_small_task(house: House, **fields: Any) -> Any:
    capable = house.task(name="capable")
    return house.task(prompt="Within how many days can a coat be returned?", escalates_to_id=capable.pk, **fields)


def test_small_model_calls_a_capable_task_by_a_word(house: House, tmp_path: Path) -> None:
    house.know(tmp_path, returns=RETURNS)
    house.through(make_small_task(house))
    called = [each for each in house.sessions() if each.trigger_kind == TriggerKind.ESCALATED]
    assert [(each.task.name, each.params["signal"], each.context) for each in called] == [("capable", "found", "")]


def test_small_model_that_sees_nothing_calls_nobody_and_writes_nothing(house: House) -> None:
    house.through(make_small_task(house))
    assert len(house.sessions()) == 1
    assert house.findings() == []


def test_task_that_is_called_for_help_cannot_call_for_help(house: House) -> None:
    task = make_small_task(house)
    with pytest.raises(SilasError) as refused:
        house.task(task_id=task.escalates_to_id, name="capable", escalates_to_id=house.task(name="third").pk)
    assert refused.value.code == "task_loop"


def test_task_that_was_called_for_help_leads_back_to_nobody_who_calls_it_again(house: House, tmp_path: Path) -> None:
    house.know(tmp_path, returns=RETURNS)
    task = make_small_task(house)
    house.trigger(task, TriggerKind.CHAIN, after=str(task.escalates_to_id))
    house.through(task)
    for _ in range(3):
        house.finish()
    assert [each.task.name for each in house.sessions()] == [task.name, "capable"]


def record_goal_check(house: House, goal: WorkItem, outcome: str, spawned: WorkItem | None = None) -> None:
    with tenant_scope(house.tenant):
        checks = [{"name": "feed is fresh", "passed": outcome == "healthy"}]
        cycle = GoalCycle.objects.create(
            goal=goal, due_at=now(), outcome=outcome, results=checks, spawned=spawned, ran_at=now()
        )
        goal_checked(cycle)


@pytest.fixture
def watched(house: House, tmp_path: Path) -> tuple[House, WorkItem, WorkItem]:
    """A company with a task triggered by a goal's checks, the goal, and work that waits for approval."""
    desk = make_desk(house.tenant, tmp_path)
    with tenant_scope(house.tenant):
        goal = WorkItem.objects.get(pk=desk.goal_id)
    house.trigger(house.task(playbook="goal"), TriggerKind.GOAL_CHECK, goal=str(goal.pk), healthy=True)
    return house, goal, desk.waiting()


def test_contract_healthy_goal_ends_as_healthy(watched: Any) -> None:
    house, goal, _ = watched
    record_goal_check(house, goal, "healthy")
    house.finish()
    assert [each.terminal_reason for each in house.sessions()] == [TerminalReason.HEALTHY]


def test_contract_goal_without_a_valid_approval_waits_and_tells(watched: Any) -> None:
    house, goal, item = watched
    record_goal_check(house, goal, "asked", item)
    house.finish()
    (session,) = house.sessions()
    with tenant_scope(house.tenant):
        told = Notification.objects.count()
    assert session.status == SessionStatus.AWAITING_APPROVAL
    assert session.admitted_at is None
    assert told == 1


def test_contract_persons_answer_ends_the_wait(watched: Any) -> None:
    house, goal, item = watched
    record_goal_check(house, goal, "asked", item)
    house.finish()
    with tenant_scope(house.tenant):
        move(WorkItem.objects.get(pk=item.pk), WorkItemStatus.BLOCKED, reason=WorkReason.DECLINED)
    assert [(each.status, each.terminal_reason) for each in house.sessions()] == [("cancelled", "approval_missing")]


def test_question_is_kept_once_however_it_is_worded(house: House) -> None:
    with tenant_scope(house.tenant):
        session = ChatSession.objects.get(pk=make_session(house.deployment).pk)
        for text in ("Do you sell parrots?", "do you SELL  parrots", "Parrots: do you sell?"):
            open_questions.record_question(session, text)
    with tenant_scope(house.tenant):
        assert [row.count for row in OpenQuestion.objects.all()] == [3]


def test_full_table_counts_what_it_knows_and_the_rarest_makes_way(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_questions, "MOST", 2)
    with tenant_scope(house.tenant):
        session = ChatSession.objects.get(pk=make_session(house.deployment).pk)
    asked = ("Do you sell parrots?", "Do you sell llamas?", "Do you sell parrots?", "Do you sell camels?")
    for text in asked:
        with tenant_scope(house.tenant):
            open_questions.record_question(session, text)
    with tenant_scope(house.tenant):
        rows = dict(OpenQuestion.objects.values_list("text", "count"))
    assert rows == {"Do you sell parrots?": 2, "Do you sell camels?": 1}


def test_greeting_is_no_question(house: House) -> None:
    with tenant_scope(house.tenant):
        session = ChatSession.objects.get(pk=make_session(house.deployment).pk)
        assert not open_questions.record_question(session, "Hello!")


def test_company_that_is_switched_off_keeps_no_questions(house: House) -> None:
    house.do(services.put_settings, actor="user:test", enabled=False)
    with tenant_scope(house.tenant):
        session = ChatSession.objects.get(pk=make_session(house.deployment).pk)
        open_questions.record_question(session, "Do you sell gift wrapping for parrots?")
    with tenant_scope(house.tenant):
        assert not OpenQuestion.objects.exists()


def ask_in_conversation(house: House, text: str) -> list[str]:
    asyncio.run(answered(house.deployment, text))
    with tenant_scope(house.tenant):
        return list(OpenQuestion.objects.values_list("text", flat=True))


def test_question_that_no_document_answers_is_kept_scrubbed(house: House) -> None:
    (kept,) = ask_in_conversation(house, "Is my card 4111 1111 1111 1111 good for parrots?")
    assert "parrots" in kept
    assert "4111" not in kept


def test_question_that_a_document_answers_is_not_kept(house: House, tmp_path: Path) -> None:
    house.know(tmp_path, returns=RETURNS)
    assert ask_in_conversation(house, "Within how many days can I return a coat?") == []


def test_work_decided_before_its_session_waits_for_it_leaves_none_waiting(watched: Any) -> None:
    house, goal, item = watched
    record_goal_check(house, goal, "asked", item)
    house.change(item, status=WorkItemStatus.BLOCKED, reason=WorkReason.DECLINED)
    house.finish()
    (session,) = house.sessions()
    assert session.status == SessionStatus.CANCELLED
    assert session.terminal_reason == TerminalReason.APPROVAL_MISSING


def test_session_that_waits_for_a_person_can_be_halted(watched: Any) -> None:
    house, goal, item = watched
    record_goal_check(house, goal, "asked", item)
    house.finish()
    (session,) = house.sessions()
    assert house.do(services.halt_session, session.pk, user=house.owner)
    session = house.session(session.pk)
    assert session.status == SessionStatus.CANCELLED
    assert session.receipt["status"] == "cancelled"
