"""What follows work that ended is done with a worker's rights in the database; what needs more is left to a web
process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from apps.approvals.models import Card
from apps.bus.enums import Queue
from apps.gates.services import save_gate
from apps.safety.models import Hold
from apps.work import queries
from apps.work.models import Batch, GoalCycle
from kernel.tenancy import tenant_scope
from tests.factories.batches import again, answer, card_of, found, items, notes, route, undoable_desk
from tests.factories.pauses import answer as answer_gate
from tests.factories.pauses import asking_gate
from tests.factories.safety import policy
from tests.factories.work import Hands, make_desk
from tests.work.drained import drain_as_a_worker
from tests.work.test_goal_cycles import House
from tests.work.test_projects import BOTH


def test_worker_carries_a_project_to_its_end(tenant: Any, tmp_path: Path, approver: Any) -> None:
    desk = make_desk(tenant, tmp_path)
    proposal = desk.propose(plan_markdown=BOTH)
    assert proposal.work_item_id
    desk.decide(desk.item(proposal.work_item_id), approver)
    drain_as_a_worker(tenant)
    with tenant_scope(tenant):
        tasks = queries.children_of(desk.item(proposal.work_item_id))
    assert [desk.item(proposal.work_item_id).status, *(task.status for task in tasks)] == ["done"] * 3


def test_worker_stops_an_approved_call_that_the_safety_loop_forbids(tenant: Any, tmp_path: Path, approver: Any) -> None:
    desk = make_desk(tenant, tmp_path)
    policy(tenant, deny=["run_skill *"])
    proposal = desk.propose(plan_markdown=BOTH)
    assert proposal.work_item_id
    desk.decide(desk.item(proposal.work_item_id), approver)
    drain_as_a_worker(tenant)
    with tenant_scope(tenant):
        assert Hold.objects.get().kind == "block"


def test_worker_carries_a_batch_and_its_undo_to_their_ends(tenant: Any, tmp_path: Path, approver: Any) -> None:
    desk = undoable_desk(tenant, tmp_path)
    (batch,) = route(desk, found(1), found(2)).batches
    answer(desk, card_of(desk, batch.pk), approver, "approve")
    drain_as_a_worker(tenant)
    done = notes(desk, 1, 2)
    desk.work(Queue.TRUSTED)
    with tenant_scope(tenant):
        undo = Batch.objects.get(undo_of=batch.pk)
    answer(desk, card_of(desk, undo.pk), approver, "approve")
    drain_as_a_worker(tenant)
    assert done == [11, 12]
    assert notes(desk, 1, 2) == [0, 0]
    assert again(desk, undo).status == "finished"
    assert len(items(desk, undo)) == 2


def test_worker_spends_a_standing_approval_for_a_repair(tenant: Any, tmp_path: Path, owner: Any) -> None:
    house = House(tenant, tmp_path)
    house.allow(owner)
    house.feed(90)
    house.fall_due()
    drain_as_a_worker(tenant)
    with tenant_scope(tenant):
        assert GoalCycle.objects.get().outcome == "spawned"


def test_worker_leaves_a_card_about_a_repair_to_a_web_process(tenant: Any, tmp_path: Path) -> None:
    house = House(tenant, tmp_path)
    house.feed(90)
    house.fall_due()
    drain_as_a_worker(tenant)
    before = house.count(Card)
    Hands(tenant).work(Queue.TRUSTED)
    assert before == 0
    assert house.count(Card) == 1


def test_worker_pauses_an_item_for_a_gate_and_goes_on_with_it(tenant: Any, tmp_path: Path, approver: Any) -> None:
    desk = make_desk(tenant, tmp_path)
    item = desk.approved(approver)
    with tenant_scope(tenant):
        save_gate(asking_gate("after_step", after_step=1), deployment_id=desk.deployment.pk)
    drain_as_a_worker(tenant)
    assert desk.item(item.pk).status == "paused"
    desk.work(Queue.TRUSTED)
    answer_gate(tenant, approver, "approve")
    drain_as_a_worker(tenant)
    assert desk.item(item.pk).status == "done"
