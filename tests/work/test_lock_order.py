"""One order of locks, held everywhere (apps.work.locks): rivals that meet in the middle of their transactions both come
to their end, whoever comes first."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from apps.approvals import locks as cards
from apps.bus.deliveries import Delivery
from apps.bus.enums import Kind, Queue
from apps.bus.services import schedule
from apps.work.enums import Waiting, WorkItemStatus, WorkReason
from apps.work.locks import lock_batch, lock_course, lock_customer, lock_item, lock_pool
from apps.work.models import Course, WorkItem
from apps.work.services import cancellation, edits, failure_handling, planning, research
from apps.work.services.candidates import RoutingResult
from apps.work.services.items import move
from kernel.clock import now
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.batches import answer, card_of, found, items, route, undoable_desk
from tests.factories.bus import lease_any
from tests.factories.planning import failing, paused
from tests.factories.sessions import make_session
from tests.factories.work import PROJECT, Desk, end_waits, note
from tests.rivals import interrupted


def approved_project(desk: Desk, user: Any) -> tuple[WorkItem, list[UUID]]:
    found_id = desk.propose(plan_markdown=PROJECT).work_item_id
    assert found_id
    project = desk.item(found_id)
    desk.decide(project, user)
    return project, [UUID(name) for name in project.spec.tasks]


def ends(desk: Desk, item_id: UUID, meet: Callable[[], None] = lambda: None) -> None:
    with tenant_scope(desk.tenant):
        item = lock_item(item_id)
        meet()
        cancellation.end_if_open(item)


def cancels(desk: Desk, item_id: UUID, user: Any) -> None:
    with tenant_scope(desk.tenant):
        cancellation.cancel_for_staff(item_id, user=user)


def reasons(desk: Desk, *item_ids: UUID) -> set[str]:
    return {desk.item(item_id).reason for item_id in item_ids}


def test_two_tasks_of_a_project_that_end_at_once_both_end(desk: Desk, approver: Any) -> None:
    project, (one, two) = approved_project(desk, approver)
    outcomes = interrupted(lambda meet: ends(desk, one, meet), lambda: ends(desk, two))
    assert outcomes == [None, None]
    assert reasons(desk, project.pk, one, two) == {"cancelled"}


def test_project_that_is_called_off_while_a_task_ends_it_has_ended(desk: Desk, approver: Any, agent: Any) -> None:
    project, (_, two) = approved_project(desk, approver)
    first, second = interrupted(lambda meet: ends(desk, two, meet), lambda: cancels(desk, project.pk, agent))
    found = (first, second.code if isinstance(second, SilasError) else second, reasons(desk, project.pk, two))
    assert found == (None, "work_settled", {"cancelled"})


def test_task_that_begins_while_another_ends_its_project_is_not_ended_under_its_worker(
    desk: Desk, approver: Any
) -> None:
    project, (one, two) = approved_project(desk, approver)

    def begin(meet: Callable[[], None]) -> None:
        with tenant_scope(desk.tenant):
            item = lock_item(two)
            meet()
            move(item, WorkItemStatus.RUNNING)

    interrupted(begin, lambda: ends(desk, one))
    assert desk.item(project.pk).status == "failed"
    assert desk.item(two).status == "running"


def test_project_that_is_approved_while_it_is_called_off_does_not_run(desk: Desk, approver: Any, agent: Any) -> None:
    found_id = desk.propose(plan_markdown=PROJECT).work_item_id
    assert found_id
    project = desk.item(found_id)

    def approve(meet: Callable[[], None]) -> None:
        with tenant_scope(desk.tenant):
            cards.lock_card(desk.card(project).pk)
            meet()
            desk.decide(project, approver)

    outcomes = interrupted(approve, lambda: cancels(desk, project.pk, agent))
    desk.work()
    assert outcomes == [None, None]
    assert reasons(desk, project.pk) == {"cancelled"}
    assert desk.order().revision == 1


@pytest.fixture
def many(tenant: Any, tmp_path: Path) -> Desk:
    return undoable_desk(tenant, tmp_path)


def test_batch_that_is_declined_while_one_of_its_items_ends_comes_to_its_end(many: Desk, approver: Any) -> None:
    (batch,) = route(many, found(1), found(2)).batches
    last = items(many, batch)[1]
    card = card_of(many, batch.pk)
    outcomes = interrupted(lambda meet: ends(many, last.pk, meet), lambda: answer(many, card, approver, "decline"))
    with tenant_scope(many.tenant):
        assert outcomes == [None, None]
        assert lock_batch(batch.pk).status == "declined"


# --- an item, its course, and who only wants to read it


def test_card_that_is_decided_while_somebody_edits_it_is_decided(desk: Desk, approver: Any, owner: Any) -> None:
    item = desk.waiting()
    card = desk.card(item)

    def approve(meet: Callable[[], None]) -> None:
        with tenant_scope(desk.tenant):
            cards.lock_card(card.pk)
            meet()
            desk.decide(item, approver)

    def edit() -> None:
        with tenant_scope(desk.tenant):
            edits.edit_plan(card.pk, user=owner, calls=[{"tool": "act", "args": {"order": "H-1", "note": 51}}])

    first, second = interrupted(approve, edit)
    assert first is None
    assert (second.code if isinstance(second, SilasError) else second) == "card_decided"


@pytest.mark.parametrize("answer_with", [planning.send_advice, planning.submit_plan])
def test_item_that_is_called_off_while_its_planner_answers_comes_to_its_end(
    tenant: Any, tmp_path: Path, approver: Any, answer_with: Callable[..., None]
) -> None:
    desk = failing(tenant, tmp_path)
    item = paused(desk, approver)
    with tenant_scope(tenant):
        lease = lease_any(Queue.PLANNER, consumer="test", seconds=60)
        assert lease is not None
        job = planning.open_job(lease.message)

    def come_back() -> None:
        with tenant_scope(tenant):
            answer_with(Delivery(tenant.pk, lease, "test"), job, "", seconds=1.0)

    outcomes = interrupted(lambda meet: ends(desk, item.pk, meet), come_back)
    assert outcomes == [None, None]
    assert reasons(desk, item.pk) == {"cancelled"}


def test_research_that_begins_beside_an_attempt_takes_its_place_after_the_item(
    tenant: Any, tmp_path: Path, approver: Any
) -> None:
    desk = failing(tenant, tmp_path)
    item = paused(desk, approver)
    with tenant_scope(tenant):
        lease = lease_any(Queue.PLANNER, consumer="test", seconds=60)
        assert lease is not None
        asked = planning.open_job(lease.message)
        assert asked is not None
        research.send_questions(Delivery(tenant.pk, lease, "test"), asked, [research.Question("What?", "one line", 20)])
        question = lease_any(Queue.EXECUTOR, consumer="test", seconds=60)
        assert question is not None

    def begin(meet: Callable[[], None]) -> None:
        with tenant_scope(tenant):
            lock_course(lock_item(item.pk))
            meet()
            lock_pool()

    def look_into() -> None:
        with tenant_scope(tenant):
            research.open_job(Delivery(tenant.pk, question, "test"))

    assert interrupted(begin, look_into) == [None, None]


# --- several items, one conversation


def test_sweep_of_two_waits_does_not_hold_their_conversation_for_the_second(desk: Desk, approver: Any) -> None:
    session = make_session(desk.deployment)
    late = [_waits(desk, approver, session.pk, number) for number in (1, 2)]

    def gives_up(meet: Callable[[], None]) -> None:
        with tenant_scope(desk.tenant):
            item = lock_item(late[1])
            meet()
            failure_handling.give_up(item)

    outcomes = interrupted(gives_up, lambda: end_waits(desk.tenant))
    assert outcomes == [None, None]
    assert [desk.item(item).status for item in late] == ["stuck", "stuck"]


def _waits(desk: Desk, user: Any, session_id: UUID, number: int) -> UUID:
    """An item whose request for another plan is overdue."""
    found_id = desk.propose(note(30 + number), session_id=session_id).work_item_id
    assert found_id
    desk.decide(desk.item(found_id), user)
    with tenant_scope(desk.tenant):
        WorkItem.objects.filter(pk=found_id).update(status=WorkItemStatus.PAUSED, reason=WorkReason.VERIFICATION)
        until = now() - timedelta(minutes=10 - number)
        Course.objects.filter(work_item_id=found_id).update(waiting_for=Waiting.REPLAN, waiting_until=until)
        schedule(Kind.WAIT_END, scope_id=found_id, due_at=until)
    return found_id


# --- several customers


def test_goal_that_found_something_for_two_customers_waits_for_both_in_one_order(many: Desk) -> None:
    def asks_for_both(meet: Callable[[], None]) -> None:
        with tenant_scope(many.tenant):
            lock_customer("C-1")
            meet()
            lock_customer("C-2")

    first, routed = interrupted(asks_for_both, lambda: route(many, found(2), found(1)))
    assert first is None
    assert isinstance(routed, RoutingResult)
