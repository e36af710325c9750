"""A message that nobody could deliver: what only waited for it comes to an end and is put before a person; nothing
waits for ever, and nothing is called done."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from apps.audit.models import AuditEntry
from apps.bus import services as bus
from apps.bus.deliveries import deliver
from apps.bus.enums import Kind, Queue
from apps.work.services import outbox as left_to_web
from kernel.tenancy import in_scope, tenant_scope
from tests.factories.bus import lease_any
from tests.factories.planning import messages
from tests.factories.work import PROJECT, Desk, Hands
from tests.work.test_goal_cycles import House

CHECKED = PROJECT.replace(
    "tasks: [one, two]\n",
    "tasks: [one, two]\nverify: [{name: all, run: python3 -c 'print(1)', expect: {equals: '1'}}]\n",
)


def dies(desk: Hands, queue: Queue) -> None:
    """Bury the oldest message of work on the queue, as after its fifth lost delivery."""
    kind = Kind.SYSTEM_EVENT if queue == Queue.TRUSTED else ""
    with tenant_scope(desk.tenant):
        lease = lease_any(queue, kind=kind, consumer="test", seconds=60)
        assert lease is not None
        bus.dead_letter(lease, "lease_expired")


def found(desk: Hands, item_id: Any) -> tuple[str, str]:
    item = desk.item(item_id)
    with tenant_scope(desk.tenant):
        told = AuditEntry.objects.filter(event="work_escalated", subject=f"work:{item_id}").count()
    return item.status, f"{item.reason} {told}"


def test_approved_item_ends(desk: Desk, approver: Any) -> None:
    item = desk.approved(approver)
    dies(desk, Queue.EXECUTOR)
    assert found(desk, item.pk) == ("blocked", "delivery_failed 1")


def test_repair_about_which_nobody_could_be_asked_ends_and_the_next_look_may_try_again(
    tenant: Any, tmp_path: Path
) -> None:
    house = House(tenant, tmp_path)
    house.feed(90)
    house.fall_due()
    desk = Hands(tenant)
    desk.work()
    dies(desk, Queue.TRUSTED)
    (first,) = house.repairs()
    assert found(desk, first.pk) == ("blocked", "delivery_failed 1")
    assert house.look() == "asked"


def test_item_that_somebody_can_still_be_asked_about_is_left_to_its_card(desk: Desk) -> None:
    item = desk.waiting()
    with tenant_scope(desk.tenant):
        left_to_web.enqueue_card(item)
    dies(desk, Queue.TRUSTED)
    assert desk.item(item.pk).status == "pending"


def test_project_whose_checks_could_not_be_run_ends(desk: Desk, approver: Any) -> None:
    item_id = desk.propose(plan_markdown=CHECKED, by_staff=True).work_item_id
    assert item_id
    desk.decide(desk.item(item_id), approver)
    while not messages(desk, "system_event"):
        asyncio.run(_deliver_one(desk))
    dies(desk, Queue.EXECUTOR)
    assert found(desk, item_id) == ("blocked", "delivery_failed 1")


async def _deliver_one(desk: Desk) -> None:
    lease = await in_scope(desk.tenant.pk, lease_any, Queue.EXECUTOR, consumer="test", seconds=60)
    if lease is not None:
        await deliver(desk.tenant.pk, lease, seconds=60)
