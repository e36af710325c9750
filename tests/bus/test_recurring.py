"""A standing message is one row that is delivered again and again, and that a change of its time cannot miss."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from apps.bus import registry, services, worker
from apps.bus.deliveries import Delivery
from apps.bus.enums import Kind, Queue
from apps.bus.models import Processed, QueueMessage
from apps.bus.rules import MAX_ATTEMPTS
from apps.bus.workers import Worker
from kernel.clock import now
from kernel.tenancy import INSTALLATION, in_scope, tenant_scope
from tests.bus.conftest import held, row
from tests.factories.bus import disperse, let_leases_run_out, let_waits_pass

HOUR = timedelta(hours=1)


@pytest.fixture
def stand(monkeypatch: pytest.MonkeyPatch, tenant: Any) -> Iterator[Any]:
    """Makes a coroutine function the only consumer; what is left of the tenant's is not delivered to another test's."""
    monkeypatch.setattr(registry, "_consumers", {})
    disperse(INSTALLATION)  # which has a message of this kind from the first day

    def become(handler: Any) -> None:
        registry.register_job(Kind.LOST_CALLS, handler, recurring=True)

    yield become
    disperse(tenant)


def schedule(tenant: Any, due_at: datetime) -> None:
    with tenant_scope(tenant):
        services.schedule(Kind.LOST_CALLS, scope_id="calls", due_at=due_at)


def work() -> None:
    worker.drain(Worker.UPKEEP, consumer="test")


def test_standing_message_is_moved_and_not_doubled(tenant: Any) -> None:
    schedule(tenant, now() + HOUR)
    soon = now() + timedelta(minutes=5)
    schedule(tenant, soon)
    assert row(tenant, queue=Queue.UPKEEP).available_at == soon


def test_standing_message_comes_back_whenever_its_handler_says_and_is_not_marked(tenant: Any, stand: Any) -> None:
    times: list[int] = []
    later = now() + HOUR

    async def handler(delivery: Delivery) -> None:
        if delivery.tenant_id == tenant.pk:
            times.append(delivery.lease.fence)
        await delivery.reschedule(lambda: later)

    stand(handler)
    schedule(tenant, now())
    for _ in range(3):
        let_waits_pass(tenant)
        work()
    assert times == [1, 2, 3]
    assert row(tenant, queue=Queue.UPKEEP).state == "queued"
    assert row(tenant, queue=Queue.UPKEEP).available_at == later
    with tenant_scope(tenant):
        assert not Processed.objects.exists()


def test_standing_message_that_is_not_due_any_more_ends_and_can_be_scheduled_again(tenant: Any, stand: Any) -> None:
    times: list[int] = []

    async def handler(delivery: Delivery) -> None:
        times.append(1)
        await delivery.reschedule(lambda: None)

    stand(handler)
    schedule(tenant, now())
    work()
    assert row(tenant, queue=Queue.UPKEEP).state == "acked"
    schedule(tenant, now())
    work()
    assert times == [1, 1]


def test_time_that_is_changed_after_a_run_began_is_kept(tenant: Any, stand: Any) -> None:
    """The handler's last transaction and the change lock the same row; whichever is second decides."""
    changed = now() + timedelta(minutes=1)

    async def handler(delivery: Delivery) -> None:
        await in_scope(delivery.tenant_id, services.schedule, Kind.LOST_CALLS, scope_id="calls", due_at=changed)
        await delivery.reschedule(lambda: now() + HOUR)
        await in_scope(delivery.tenant_id, services.schedule, Kind.LOST_CALLS, scope_id="calls", due_at=changed)

    stand(handler)
    schedule(tenant, now())
    work()
    assert row(tenant, queue=Queue.UPKEEP).available_at == changed


@pytest.mark.parametrize("failure", ["RuntimeError", "lease_expired"])
def test_standing_message_that_always_fails_or_loses_its_holder_comes_back(
    tenant: Any, stand: Any, failure: str
) -> None:
    async def handler(delivery: Delivery) -> None:
        raise RuntimeError

    stand(handler)
    schedule(tenant, now())
    for _ in range(MAX_ATTEMPTS):
        let_waits_pass(tenant)
        if failure == "RuntimeError":
            work()
            continue
        held(tenant, Queue.UPKEEP)
        let_leases_run_out(tenant)
    with tenant_scope(tenant):
        services.expire_leases()
    message = row(tenant, queue=Queue.UPKEEP)
    assert message.state == "queued"
    assert message.attempts == 0
    assert message.reason == failure
    assert message.available_at > now()


@pytest.fixture
def installation(database: None) -> Iterator[None]:
    with tenant_scope(INSTALLATION):
        QueueMessage.objects.all().delete()
    yield
    with tenant_scope(INSTALLATION):
        QueueMessage.objects.filter(kind=Kind.LOST_CALLS).delete()


def test_work_of_the_installation_belongs_to_no_tenant(tenant: Any, installation: None, stand: Any) -> None:
    seen: list[Any] = []

    async def handler(delivery: Delivery) -> None:
        seen.append(delivery.tenant_id)

    stand(handler)
    with tenant_scope(INSTALLATION):
        services.enqueue(Kind.LOST_CALLS, scope_id="calls")
    with tenant_scope(tenant):
        assert not QueueMessage.objects.exists()
    work()
    assert seen == [INSTALLATION]


def test_work_of_the_installation_that_fails_for_good_stops_nothing(installation: None, stand: Any) -> None:
    with tenant_scope(INSTALLATION):
        services.enqueue(Kind.LOST_CALLS, scope_id="calls")
        services.dead_letter(held(INSTALLATION, Queue.UPKEEP), "broken")
    assert row(INSTALLATION, kind=Kind.LOST_CALLS).state == "dead"
