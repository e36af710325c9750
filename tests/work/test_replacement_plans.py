"""Work that fails: another plan, or a person."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import time_machine

from apps.approvals.models import Card
from apps.bus.enums import Queue
from apps.console.pages.review.origins import origins_of
from apps.gates.services import save_gate
from apps.guard.models import GuardedRun
from apps.sessions.models import ChatSession
from apps.tenants.models import Deployment
from apps.work import signals
from apps.work.enums import WorkItemStatus, WorkReason
from apps.work.models import Course, ResearchRequest, WorkItem
from apps.work.visitor_messages import READ_INSTRUCTIONS
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.planning import (
    advice,
    body_of,
    course,
    exhausted,
    failing,
    messages,
    other,
    outcomes,
    replies,
    told_by,
    trusted,
)
from tests.factories.work import CAP, Desk, end_waits, note
from tests.fakes.openai_server import FakeOpenAI, Reply, final


def test_other_plan_gets_a_card_of_its_own_and_runs_after_its_approval(
    tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI
) -> None:
    planner.replies = replies(replan=other(note(60)))
    desk = failing(tenant, tmp_path)
    old = exhausted(desk, approver)
    trusted(desk)
    with tenant_scope(tenant):
        new = Course.objects.get(replaces=old)
        card = Card.objects.get(subject_id=new.work_item_id)
    old = desk.item(old.pk)
    assert old.status == WorkItemStatus.STUCK
    assert old.reason == WorkReason.REPLANNED
    assert new.depth == 1
    assert card.status == "open"
    assert desk.item(new.work_item_id).status == WorkItemStatus.PENDING


def researched(tenant: Any, folder: Path, approver: Any, planner: FakeOpenAI, *, answer: str) -> tuple[Desk, WorkItem]:
    """Failed work whose planner has researched another plan, which is about to be adopted."""
    question = json.dumps({"task": "What is usual?", "return_format": "one line", "max_tokens": 20})

    def reply(request: dict[str, Any]) -> Reply:
        said = body_of(request)
        if "failed for good" not in said:
            return advice()
        return other(note(60)) if "# Research:" in said else Reply(calls=(("request_research", question),))

    planner.replies = reply
    desk = failing(tenant, folder)
    item = exhausted(desk, approver)
    with tenant_scope(tenant):
        assert ResearchRequest.objects.update(result=answer) == 1
    return desk, item


def test_value_that_was_looked_up_for_another_plan_is_not_the_customers(
    tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI
) -> None:
    desk, old = researched(tenant, tmp_path, approver, planner, answer="It is usual to note 60.")
    trusted(desk)
    with tenant_scope(tenant):
        card = Card.objects.get(subject_id=Course.objects.get(replaces=old).work_item_id)
        origins = origins_of(card)
    assert origins is not None
    (line,) = [one for one in origins.lines if one.value == "60"]
    assert line.origin == "From the document “what was looked up for this plan”"
    assert "looked up for this plan" in origins.asked_by


@pytest.mark.parametrize("is_marked", [True, False], ids=["marked", "unmarked"])
def test_card_of_another_plan_says_that_instructions_were_read_before(
    tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI, is_marked: bool
) -> None:
    planner.replies = replies(replan=other(note(60)))
    desk = failing(tenant, tmp_path)
    old = exhausted(desk, approver)
    with tenant_scope(tenant):
        GuardedRun.objects.filter(pk=old.run_id).update(content_marks=int(is_marked))
    trusted(desk)
    with tenant_scope(tenant):
        card = Card.objects.get(subject_id=Course.objects.get(replaces=old).work_item_id)
    warnings = [fact["text"] for fact in card.facts if fact["label"] == "Warning"]
    assert warnings == ([READ_INSTRUCTIONS] if is_marked else [])


def test_other_plan_runs_nothing_without_its_approval(
    tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI
) -> None:
    planner.replies = replies(replan=other(note(60, "H-3")))
    desk = failing(tenant, tmp_path)
    exhausted(desk, approver)
    trusted(desk)
    desk.work()
    assert desk.order("H-3").revision == 1


def test_other_plan_is_never_under_a_standing_approval(
    tenant: Any, tmp_path: Path, approver: Any, owner: Any, planner: FakeOpenAI
) -> None:
    planner.replies = replies(replan=other(note(5, "H-3")))
    desk = failing(tenant, tmp_path)
    desk.allow_standing(owner)
    old = exhausted(desk, approver)
    trusted(desk)
    with tenant_scope(tenant):
        new = Course.objects.get(replaces=old).work_item
    assert new.parent_id is None
    assert new.approval_token_id is None


@pytest.mark.parametrize(
    "answer",
    [
        other(note(50)),
        final({"message": "There is no other way.", "plan_action": None}),
        final({"message": "Here.", "plan_action": {"action": "revise", "plan_markdown": "no plan"}}),
    ],
    ids=["the same calls", "none", "not a plan"],
)
def test_no_other_plan_ends_with_a_person(
    tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI, answer: Reply
) -> None:
    planner.replies = replies(replan=answer)
    desk = failing(tenant, tmp_path)
    item = exhausted(desk, approver)
    with tenant_scope(tenant):
        wanted = ChatSession.objects.filter(pk=item.session_id, wanted_person_at__isnull=False).exists()
    assert item.status == WorkItemStatus.STUCK
    assert item.reason == WorkReason.VERIFICATION
    assert wanted is True
    assert outcomes(desk, "replan_ended") == ["no_other_plan"]
    assert messages(desk, "plan_result") == []


@pytest.mark.parametrize("calls", [(note(500),), (note(-5),), ()], ids=["what a gate forbids", "bad values", "nothing"])
def test_other_plan_that_may_not_be_asked_ends_with_a_person(
    tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI, calls: tuple[Any, ...]
) -> None:
    planner.replies = replies(replan=other(*calls))
    desk = failing(tenant, tmp_path)
    with tenant_scope(tenant):
        save_gate(CAP, deployment_id=desk.deployment.pk)
    item = exhausted(desk, approver)
    trusted(desk)
    ended = desk.item(item.pk)
    with tenant_scope(tenant):
        cards = Card.objects.count()
    assert ended.status == WorkItemStatus.STUCK
    assert ended.reason == WorkReason.VERIFICATION
    assert cards == 1


def test_other_plan_cannot_use_what_the_level_did_not_allow(
    tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI
) -> None:
    planner.replies = replies(replan=other(note(60)))
    desk = failing(tenant, tmp_path)
    item = desk.approved(approver)
    with tenant_scope(tenant):
        Course.objects.filter(work_item=item).update(granted=["look"])
    desk.work()
    trusted(desk)
    assert outcomes(desk, "replan_ended") == ["refused"]


def test_other_plan_that_does_not_come_ends_with_a_person(
    tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI
) -> None:
    desk = failing(tenant, tmp_path)
    item = desk.approved(approver)
    with tenant_scope(tenant):
        spent = {**item.used.model_dump(mode="json"), "tokens": 200_000}
        WorkItem.objects.filter(pk=item.pk).update(budget_used=spent)
    desk.work(Queue.EXECUTOR)
    with time_machine.travel(now().timestamp() + 601, tick=True):
        end_waits(tenant)
    ended = desk.item(item.pk)
    assert ended.status == WorkItemStatus.STUCK
    assert ended.reason == WorkReason.BUDGET


def test_third_plan_is_the_last(tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI) -> None:
    """Depth two: the plan and two replacements; then a person."""
    desk = failing(tenant, tmp_path)
    item, seen = desk.approved(approver), []
    for value in (60, 70, 80):
        planner.replies = replies(replan=other(note(value)))
        desk.work()
        trusted(desk)
        seen.append((desk.item(item.pk).reason, course(desk, item).depth))
        with tenant_scope(tenant):
            new = Course.objects.filter(replaces=item).first()
        if new is None:
            break
        item = desk.item(new.work_item_id)
        desk.decide(item, approver)
    assert seen == [("replanned", 0), ("replanned", 1), ("verification_failed", 2)]


def test_plan_that_was_tried_before_is_no_other_plan(
    tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI
) -> None:
    """The second replacement must not be the first plan again."""
    desk = failing(tenant, tmp_path)
    planner.replies = replies(replan=other(note(60)))
    first = exhausted(desk, approver)
    trusted(desk)
    with tenant_scope(tenant):
        second = Course.objects.get(replaces=first).work_item
    desk.decide(desk.item(second.pk), approver)
    planner.replies = replies(replan=other(note(50)))
    desk.work()
    assert outcomes(desk, "replan_ended") == ["proposed", "no_other_plan"]


def test_builtin_planner_has_no_other_way_and_a_person_is_asked(tenant: Any, tmp_path: Path, approver: Any) -> None:
    desk = failing(tenant, tmp_path, planner="builtin:grounded")
    told = told_by(desk, lambda: exhausted(desk, approver))
    assert told[-1].startswith("I couldn't finish this: Change H-1.")
    assert "This is taking a little longer: Change H-1. I'm trying another way." in told


def test_escalation_of_the_goal_is_said_in_its_words(
    tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI
) -> None:
    heard: list[tuple[str, bool]] = []

    def hear(item: WorkItem, text: str, needs_person: bool) -> None:
        heard.append((text, needs_person))

    desk = failing(tenant, tmp_path)
    item = desk.approved(approver)
    with tenant_scope(tenant):
        goal = WorkItem.objects.get(pk=desk.goal_id)
        spec = goal.spec.model_dump(mode="json")
        spec["escalation"]["report"] = {"action": "respond", "message": "We will write to you."}
        changed = type(goal.spec).model_validate(spec)
        WorkItem.objects.filter(pk=goal.pk).update(plan=changed.as_text())
        Deployment.objects.get(active_goal_id=goal.pk).save()  # puts the changed goal in force
    signals.work_escalated.connect(hear)
    try:
        desk.work()
    finally:
        signals.work_escalated.disconnect(hear)
    assert heard == [("We will write to you.", False)]
    assert desk.item(item.pk).status == WorkItemStatus.STUCK
