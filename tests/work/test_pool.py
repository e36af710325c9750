"""A tenant has so many places at once and no more, whoever counts: they are taken in the database, and given back by
whoever dies."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import uuid4

from django.test import override_settings

from apps.bus import services as bus
from apps.bus.enums import Queue
from apps.bus.models import QueueMessage
from apps.bus.schemas import Lease
from apps.work import pool
from apps.work.conflicts import Claims
from apps.work.enums import SlotKind, WorkItemStatus
from apps.work.models import PoolSlot
from kernel.tenancy import tenant_scope
from tests.factories.bus import lease_any, let_leases_run_out
from tests.factories.work import Desk, note
from tests.rivals import race

BOOK = Claims(frozenset({"record:orders:C-1"}))


def asked(tenant: Any, *, scope: str = "S", kind: SlotKind = SlotKind.EXECUTION, claims: Claims | None = None) -> Lease:
    """Return a queued message of the pool, leased."""
    with tenant_scope(tenant):
        name = str(uuid4())
        message = bus.send_message(
            Queue.EXECUTOR, kind="execution_request", scope_id=name, sender="runtime", task_id=uuid4(), message_id=name
        )
        pool.join_queue(message, scope_id=scope, kind=kind, claims=claims)
    return taken(tenant, message)


def taken(tenant: Any, message: QueueMessage) -> Lease:
    with tenant_scope(tenant):
        lease = bus.lease(Queue.EXECUTOR, consumer="test", scope_id=message.scope_id, seconds=60)
    assert lease is not None
    return lease


def enters(tenant: Any, lease: Lease) -> bool:
    with tenant_scope(tenant):
        return pool.acquire(lease)


def leaves(tenant: Any, lease: Lease) -> None:
    with tenant_scope(tenant):
        bus.ack(lease)
        pool.release(lease.message.pk)


# --- how many


def test_ninth_of_one_scope_waits(tenant: Any) -> None:
    assert [enters(tenant, asked(tenant)) for _ in range(9)] == [True] * 8 + [False]


def test_seventeenth_of_a_tenant_waits(tenant: Any) -> None:
    leases = [asked(tenant, scope=str(number)) for number in range(17)]
    assert [enters(tenant, lease) for lease in leases] == [True] * 16 + [False]


def test_places_of_another_tenant_are_not_counted(tenant: Any, other_tenant: Any) -> None:
    for each in (tenant, other_tenant):
        let_in = [enters(each, asked(each, scope=str(number))) for number in range(17)]
        assert let_in == [True] * 16 + [False]


def test_scope_of_other_tenant_with_the_same_name_is_another(tenant: Any, other_tenant: Any) -> None:
    for _ in range(8):
        enters(tenant, asked(tenant))
    assert enters(other_tenant, asked(other_tenant))


def test_rivals_never_take_more_places_than_there_are(tenant: Any) -> None:
    leases = [asked(tenant, scope=str(number)) for number in range(24)]
    assert sum(race(*[partial(enters, tenant, lease) for lease in leases])) == 16  # type: ignore[arg-type]


def test_place_is_taken_once_however_often_it_is_asked_for(tenant: Any) -> None:
    lease = asked(tenant)
    assert [enters(tenant, lease) for _ in range(10)] == [True] * 10
    assert sum(enters(tenant, asked(tenant)) for _ in range(8)) == 7


@override_settings(POOL_SIZE=1)
def test_place_that_was_left_is_free(tenant: Any) -> None:
    first, second = asked(tenant), asked(tenant)
    enters(tenant, first)
    before = enters(tenant, second)
    leaves(tenant, first)
    assert before is False
    assert enters(tenant, second) is True


@override_settings(POOL_SIZE=1)
def test_place_of_a_dead_worker_is_free_with_its_lease(tenant: Any) -> None:
    first, second = asked(tenant), asked(tenant)
    enters(tenant, first)
    let_leases_run_out(tenant, pk=first.message.pk)
    assert enters(tenant, second)


@override_settings(POOL_SIZE=1)
def test_message_that_is_delivered_again_has_to_ask_again(tenant: Any) -> None:
    first, second = asked(tenant), asked(tenant)
    enters(tenant, first)
    let_leases_run_out(tenant, pk=first.message.pk)
    enters(tenant, second)
    assert not enters(tenant, taken(tenant, first.message))


# --- who first


@override_settings(POOL_SIZE=2)
def test_research_leaves_a_place_for_execution_that_waits(tenant: Any) -> None:
    enters(tenant, asked(tenant))
    research, execution = asked(tenant, kind=SlotKind.RESEARCH), asked(tenant)
    assert [enters(tenant, research), enters(tenant, execution)] == [False, True]


@override_settings(POOL_SIZE=2)
def test_research_has_a_place_when_no_execution_waits(tenant: Any) -> None:
    enters(tenant, asked(tenant))
    assert enters(tenant, asked(tenant, kind=SlotKind.RESEARCH))


def test_work_that_writes_the_same_waits(tenant: Any) -> None:
    first, second = asked(tenant, scope="1", claims=BOOK), asked(tenant, scope="2", claims=BOOK)
    assert [enters(tenant, first), enters(tenant, second)] == [True, False]


def test_work_that_was_asked_for_later_does_not_write_first(tenant: Any) -> None:
    first, second = asked(tenant, claims=BOOK), asked(tenant, claims=BOOK)
    assert [enters(tenant, second), enters(tenant, first)] == [False, True]


def test_work_of_other_tenant_that_writes_the_same_name_does_not_wait(tenant: Any, other_tenant: Any) -> None:
    enters(tenant, asked(tenant, claims=BOOK))
    assert enters(other_tenant, asked(other_tenant, claims=BOOK))


def test_work_below_a_claimed_path_waits(tenant: Any) -> None:
    above = Claims(frozenset({"path:/a"}), frozenset({"path:/"}))
    below = Claims(frozenset({"path:/a/b"}), frozenset({"path:/a", "path:/"}))
    first, second = asked(tenant, claims=below), asked(tenant, claims=above)
    assert [enters(tenant, first), enters(tenant, second)] == [True, False]


# --- items


def test_items_of_one_record_are_done_in_the_order_of_their_yes(desk: Desk, approver: Any) -> None:
    later, sooner = (desk.item(desk.propose(note(value)).work_item_id or uuid4()) for value in (30, 40))
    desk.decide(sooner, approver)
    desk.decide(later, approver)
    desk.work()
    assert desk.order().data["note"] == 30
    assert desk.order().revision == 3


@override_settings(POOL_SIZE=0)
def test_item_without_a_place_waits_and_uses_nothing(desk: Desk, approver: Any) -> None:
    item = desk.approved(approver)
    desk.work()
    waiting = desk.item(item.pk)
    with tenant_scope(desk.tenant):
        message = QueueMessage.objects.get(task_id=item.pk)
    found = (waiting.status, waiting.attempts_made, message.state, message.attempts)
    assert found == (WorkItemStatus.PENDING, 0, "queued", 0)


def test_item_that_is_done_leaves_no_place_behind(desk: Desk, approver: Any) -> None:
    desk.approved(approver)
    desk.work()
    with tenant_scope(desk.tenant):
        assert not PoolSlot.objects.exists()


def test_message_that_is_dead_leaves_no_place_behind(desk: Desk, approver: Any) -> None:
    desk.approved(approver)
    with tenant_scope(desk.tenant):
        lease = lease_any(Queue.EXECUTOR, consumer="test")
        assert lease
        bus.dead_letter(lease, "broken")
        assert not PoolSlot.objects.exists()
