"""Cancelling work: at once where nothing runs, at the next tool call where something does; by whom."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from apps.approvals.cards.lifecycle import withdraw_cards_about
from apps.approvals.enums import Withdrawal
from apps.audit.models import AuditEntry
from apps.guard.models import GuardedRun, ToolCall
from apps.work import signals
from apps.work.enums import WorkItemStatus, WorkReason
from apps.work.models import Attempt, WorkItem
from apps.work.services import cancellation
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope
from tests.factories.batches import carry_out, undoable_desk
from tests.factories.bus import let_leases_run_out
from tests.factories.tenants import make_member
from tests.factories.work import NOTE, PROJECT, Desk, make_desk, note
from tests.rivals import race

SLOW = "import time\ntime.sleep(1.5)\n" + NOTE


def cancel(desk: Desk, item: WorkItem, user: Any) -> WorkItem:
    with tenant_scope(desk.tenant):
        return cancellation.cancel_for_staff(item.pk, user=user)


def refusal(desk: Desk, item: WorkItem, **who: Any) -> str:
    try:
        with tenant_scope(desk.tenant):
            if "user" in who:
                cancellation.cancel_for_staff(item.pk, **who)
            else:
                cancellation.cancel_for_visitor(item.pk, **who)
    except SilasError as error:
        return error.code
    return ""


def state(desk: Desk, item: WorkItem) -> tuple[str, str]:
    found = desk.item(item.pk)
    return found.status, found.reason


CANCELLED = (WorkItemStatus.FAILED, WorkReason.CANCELLED)


def test_item_that_waits_for_a_person_is_cancelled_at_once(desk: Desk, agent: Any) -> None:
    item = desk.waiting()
    cancel(desk, item, agent)
    assert state(desk, item) == CANCELLED


def test_approval_of_a_cancelled_item_runs_nothing(desk: Desk, agent: Any, approver: Any) -> None:
    item = desk.waiting()
    cancel(desk, item, agent)
    with contextlib.suppress(SilasError):
        desk.decide(item, approver)
    desk.work()
    assert state(desk, item) == CANCELLED
    assert desk.order().revision == 1


def test_cancelled_item_s_card_asks_nobody_any_more(desk: Desk, agent: Any) -> None:
    item = desk.waiting()
    cancel(desk, item, agent)
    assert desk.card(item).status == "withdrawn"


def test_card_that_was_taken_back_ends_its_item(desk: Desk) -> None:
    item = desk.waiting()
    with tenant_scope(desk.tenant):
        withdraw_cards_about("work_item", item.pk, reason=Withdrawal.STAFF)
    assert state(desk, item) == CANCELLED


def test_approved_item_that_nobody_began_is_cancelled_at_once(desk: Desk, agent: Any, approver: Any) -> None:
    item = desk.approved(approver)
    cancel(desk, item, agent)
    desk.work()
    assert state(desk, item) == CANCELLED
    assert desk.order().revision == 1


def test_cancelled_item_says_so(desk: Desk, agent: Any) -> None:
    told: list[str] = []

    def hear(item: WorkItem, status: str, progress: signals.Progress) -> None:
        told.append(str(progress.text))

    item = desk.waiting()
    signals.work_changed.connect(hear)
    try:
        cancel(desk, item, agent)
    finally:
        signals.work_changed.disconnect(hear)
    assert told == ["Cancelled: Change H-1. Nothing was changed."]


def test_cancelled_item_is_written_down(desk: Desk, agent: Any) -> None:
    item = desk.waiting()
    cancel(desk, item, agent)
    with tenant_scope(desk.tenant):
        entry = AuditEntry.objects.get(event="work_cancelled")
    assert entry.actor == f"user:{agent.pk}"
    assert entry.subject == f"work:{item.pk}"


def test_running_item_stops_at_its_next_call(tenant: Any, tmp_path: Path, agent: Any, approver: Any) -> None:
    """Two calls, cancelled during the first: its effect stays, and the second is never made."""
    desk = make_desk(tenant, tmp_path, script=SLOW)
    both = desk.propose(note(30), note(40, "H-3")).work_item_id
    assert both
    desk.decide(desk.item(both), approver)

    def call_off() -> None:
        for _ in range(400):
            with tenant_scope(tenant):
                if ToolCall.objects.filter(tool="act", state="admitted").exists():
                    cancellation.cancel_for_staff(both, user=agent)
                    return
            time.sleep(0.02)

    race(desk.work, call_off)
    found = (state(desk, desk.item(both)), desk.order().revision, desk.order("H-3").revision)
    assert found == (CANCELLED, 2, 1)


def test_running_item_that_was_cancelled_tells_what_stays(
    tenant: Any, tmp_path: Path, agent: Any, approver: Any
) -> None:
    told: list[str] = []

    def hear(item: WorkItem, status: str, progress: signals.Progress) -> None:
        told.append(str(progress.text))

    signals.work_changed.connect(hear)
    try:
        test_running_item_stops_at_its_next_call(tenant, tmp_path, agent, approver)
    finally:
        signals.work_changed.disconnect(hear)
    assert told[-1].endswith("Anything already done stays in place. Our team can tell you what that was.")


def test_running_item_whose_worker_died_is_cancelled_when_it_is_delivered_again(
    desk: Desk, agent: Any, approver: Any
) -> None:
    item = desk.approved(approver)
    with tenant_scope(desk.tenant):
        run = GuardedRun.objects.create(origin="work", owner_ref=item.pk, phase="execution")
        Attempt.objects.create(work_item=item, number=1, started_at=item.created_at)
        WorkItem.objects.filter(pk=item.pk).update(status=WorkItemStatus.RUNNING, attempts_made=1, run_id=run.pk)
    cancel(desk, item, agent)
    let_leases_run_out(desk.tenant)
    desk.work()
    assert state(desk, item) == CANCELLED
    assert desk.item(item.pk).attempts_made == 1


@pytest.mark.parametrize("role", ["viewer", "stranger"])
def test_item_is_not_cancelled_by_whoever_has_no_right(desk: Desk, role: str, request: Any) -> None:
    item = desk.waiting()
    assert refusal(desk, item, user=request.getfixturevalue(role))
    assert state(desk, item)[0] == "pending"


def test_item_of_other_tenant_is_not_found(desk: Desk, other_tenant: Any, agent: Any) -> None:
    item, theirs = desk.waiting(), make_member(other_tenant, "agent")
    with pytest.raises(SilasError), tenant_scope(other_tenant):
        cancellation.cancel_for_staff(item.pk, user=theirs)


def test_visitor_takes_their_own_request_back(desk: Desk) -> None:
    item = desk.waiting()
    assert refusal(desk, item, session_id=uuid4(), subject="C-1") == ""
    assert state(desk, item) == CANCELLED


def test_visitor_who_is_nobody_in_particular_takes_back_what_this_conversation_asked_for(desk: Desk) -> None:
    item = desk.item(desk.propose(subject="").work_item_id or uuid4())
    assert refusal(desk, item, session_id=item.session_id, subject="") == ""
    assert state(desk, item) == CANCELLED


@pytest.mark.parametrize("subject", ["", "C-1"])
def test_visitor_of_another_conversation_cannot_take_it_back(desk: Desk, subject: str) -> None:
    item = desk.item(desk.propose(subject="").work_item_id or uuid4())
    assert refusal(desk, item, session_id=uuid4(), subject=subject) == "not_found"


def test_visitor_of_another_tenant_cannot_take_it_back(desk: Desk, other_tenant: Any) -> None:
    """Even with the same ids of conversation and customer."""
    item = desk.waiting()
    assert item.session_id
    with pytest.raises(NotFound), tenant_scope(other_tenant):
        cancellation.cancel_for_visitor(item.pk, session_id=item.session_id, subject="C-1")


def test_visitor_cannot_take_back_what_staff_may_undo(tenant: Any, tmp_path: Path, approver: Any) -> None:
    desk = undoable_desk(tenant, tmp_path)
    desk.approved(approver)
    carry_out(desk)
    with tenant_scope(tenant):
        offered = WorkItem.objects.get(requested_by="system")
    assert refusal(desk, offered, session_id=uuid4(), subject="C-1") == "not_found"


def test_visitor_cannot_take_back_one_task_of_a_project(desk: Desk) -> None:
    project = desk.propose(plan_markdown=PROJECT).work_item_id
    with tenant_scope(desk.tenant):
        task = WorkItem.objects.filter(parent_id=project).latest("created_at")
    assert refusal(desk, task, session_id=uuid4(), subject="C-1") == "not_found"


@pytest.mark.parametrize("subject", ["C-2", ""])
def test_visitor_cannot_take_another_s_request_back(desk: Desk, subject: str) -> None:
    item = desk.waiting()
    assert refusal(desk, item, session_id=item.session_id, subject=subject) == "not_found"


def test_finished_item_cannot_be_cancelled(desk: Desk, agent: Any, approver: Any) -> None:
    item = desk.approved(approver)
    desk.work()
    assert refusal(desk, item, user=agent) == "work_settled"
    assert state(desk, item)[0] == WorkItemStatus.DONE


def test_goal_cannot_be_cancelled(desk: Desk, agent: Any) -> None:
    assert refusal(desk, desk.item(desk.goal_id), user=agent) == "not_cancellable"


def test_cancelled_project_takes_its_tasks_along(desk: Desk, agent: Any, approver: Any) -> None:
    project = desk.propose(plan_markdown=PROJECT).work_item_id
    assert project
    desk.decide(desk.item(project), approver)
    cancel(desk, desk.item(project), agent)
    desk.work()
    with tenant_scope(desk.tenant):
        tasks = list(WorkItem.objects.filter(parent_id=project).values_list("reason", flat=True))
    found = (state(desk, desk.item(project)), desk.order().revision, desk.order("H-3").revision)
    assert found == (CANCELLED, 1, 1)
    assert tasks == ["cancelled", "cancelled"]
