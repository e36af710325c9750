"""A handler's effect happens once, even when the handler fails, hangs or is killed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.audit.services import record
from apps.bus import registry, services
from apps.bus.deliveries import Delivery, Undeliverable
from apps.bus.enums import Kind, Queue
from apps.bus.models import Processed, QueueMessage
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.tenancy import in_scope, tenant_scope
from silas_platform.celery import app
from tests.bus.conftest import row
from tests.factories.bus import forget_pokes, let_waits_pass, make_message, pokes

QUEUE = Queue.RUNTIME
MARK = "runtime:system_event"


def enqueue(tenant: Any, **fields: Any) -> QueueMessage:
    return make_message(tenant, queue=QUEUE, **fields)


def state(tenant: Any) -> tuple[str, int, str]:
    found = row(tenant, queue=QUEUE)
    return found.state, found.attempts, found.reason


def effect() -> int:
    """Something that shows whether it was committed, and how often."""
    record(AuditEvent.STAFF_LOGGED_IN, actor="user:test")
    return 7


def effects(tenant: Any) -> int:
    with tenant_scope(tenant):
        return AuditEntry.objects.filter(event=AuditEvent.STAFF_LOGGED_IN).count()


def steal(tenant: Any) -> None:
    """Let somebody else have the only message."""
    with tenant_scope(tenant):
        QueueMessage.objects.filter(queue=QUEUE).update(fence=1000)


async def commit_effect(delivery: Delivery) -> None:
    assert await delivery.commit(effect) == 7


async def do_nothing(delivery: Delivery) -> None: ...


def test_message_that_was_handled_is_acked_and_its_effect_marked_under_the_consumers_name(
    tenant: Any, consume: Any, drain: Any
) -> None:
    heard: list[Any] = []

    @consume
    async def handler(delivery: Delivery) -> None:
        heard.append((delivery.tenant_id, delivery.message.payload))
        await commit_effect(delivery)

    message = enqueue(tenant, payload={"n": 1})
    drain()
    assert (tenant.pk, {"n": 1}) in heard
    assert state(tenant) == ("acked", 0, "")
    assert effects(tenant) == 1
    with tenant_scope(tenant):
        assert Processed.objects.filter(consumer=MARK, message_id=message.message_id).exists()


def test_handler_that_commits_nothing_ends_the_delivery(tenant: Any, consume: Any, drain: Any) -> None:
    consume(do_nothing)
    enqueue(tenant)
    drain()
    assert state(tenant)[0] == "acked"


def test_handlers_effect_is_not_repeated_for_a_message_marked_already(tenant: Any, consume: Any, drain: Any) -> None:
    consume(commit_effect)
    message = enqueue(tenant)
    with tenant_scope(tenant):
        services.mark_processed(MARK, message.message_id)
    drain()
    assert state(tenant)[0] == "acked"
    assert effects(tenant) == 0


def test_effect_that_a_rival_had_meanwhile_is_rolled_back_and_the_message_acked(
    tenant: Any, consume: Any, drain: Any
) -> None:
    @consume
    async def handler(delivery: Delivery) -> None:
        await in_scope(delivery.tenant_id, services.mark_processed, MARK, delivery.message.message_id)
        await delivery.commit(effect)

    enqueue(tenant)
    drain()
    assert state(tenant)[0] == "acked"
    assert effects(tenant) == 0


def test_effect_of_a_former_holder_is_rolled_back(tenant: Any, consume: Any, drain: Any) -> None:
    @consume
    async def handler(delivery: Delivery) -> None:
        await asyncio.to_thread(steal, tenant)
        await delivery.commit(effect)

    enqueue(tenant)
    drain()
    assert row(tenant).fence == 1000
    assert effects(tenant) == 0


def test_step_that_fails_after_the_finish_leaves_nothing(tenant: Any, consume: Any, drain: Any) -> None:
    def broken(delivery: Delivery) -> None:
        effect()
        delivery.finish()
        raise RuntimeError

    @consume
    async def handler(delivery: Delivery) -> None:
        await in_scope(delivery.tenant_id, broken, delivery)

    enqueue(tenant)
    drain()
    assert state(tenant) == ("queued", 1, "RuntimeError")
    assert effects(tenant) == 0


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (RuntimeError("my secret"), ("queued", 1, "RuntimeError")),
        (SilasError(ErrorCode.RECORD_CHANGED, "It changed."), ("queued", 1, "record_changed")),
        (Undeliverable(ErrorCode.NOT_FOUND, "It is gone."), ("dead", 1, "not_found")),
    ],
)
def test_handler_that_raises_gives_the_message_back_or_buries_it(
    tenant: Any, consume: Any, drain: Any, error: Exception, expected: tuple[str, int, str]
) -> None:
    @consume
    async def handler(delivery: Delivery) -> None:
        raise error

    enqueue(tenant)
    drain()
    assert state(tenant) == expected


def test_handler_that_always_raises_sees_the_message_five_times(tenant: Any, consume: Any, drain: Any) -> None:
    @consume
    async def handler(delivery: Delivery) -> None:
        raise RuntimeError

    enqueue(tenant)
    for _ in range(6):
        drain()
        let_waits_pass(tenant)
    assert state(tenant) == ("dead", 5, "RuntimeError")


def test_message_of_a_kind_that_nobody_consumes_is_kept_and_its_queue_left_alone_if_it_has_no_consumer(
    tenant: Any, consume: Any, drain: Any
) -> None:
    consume(commit_effect)
    registry.register(Queue.PLANNER, Kind.REPLAN_REQUEST, commit_effect)
    kept, alone = (make_message(tenant, queue=queue) for queue in (Queue.PLANNER, Queue.EXECUTOR))
    drain()
    assert row(tenant, pk=kept.pk).reason == "no_consumer"
    assert row(tenant, pk=alone.pk).fence == 0


def test_deferred_message_waits_without_counting_a_failure(tenant: Any, consume: Any, drain: Any) -> None:
    @consume
    async def handler(delivery: Delivery) -> None:
        await in_scope(delivery.tenant_id, delivery.defer, 60, "path_in_use")

    enqueue(tenant)
    drain()
    assert state(tenant) == ("queued", 0, "path_in_use")


def test_scope_keeps_its_order_and_one_message_that_fails_does_not_hold_up_another_scope(
    tenant: Any, consume: Any, drain: Any
) -> None:
    heard: list[int] = []

    @consume
    async def handler(delivery: Delivery) -> None:
        if delivery.message.content == "poison":
            raise RuntimeError
        if delivery.tenant_id == tenant.pk:
            heard.append((delivery.message.payload or {})["n"])

    enqueue(tenant, scope_id="another", content="poison")
    for number in range(40):
        enqueue(tenant, payload={"n": number})
    drain()
    assert heard == list(range(40))


def test_run_longer_than_its_lease_keeps_it_by_its_heartbeat(tenant: Any, consume: Any, drain: Any) -> None:
    @consume
    async def handler(delivery: Delivery) -> None:
        await asyncio.sleep(1.5)
        await delivery.commit(effect)

    enqueue(tenant)
    drain(lease_seconds=1.0)
    assert state(tenant) == ("acked", 0, "")
    assert effects(tenant) == 1


def test_run_whose_lease_is_lost_is_cancelled(tenant: Any, consume: Any, drain: Any) -> None:
    ended: list[bool] = []

    @consume
    async def handler(delivery: Delivery) -> None:
        await asyncio.to_thread(steal, tenant)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append(True)
            raise

    enqueue(tenant)
    drain(lease_seconds=0.3)
    assert ended == [True]


def test_kind_has_one_consumer_however_often_it_is_registered(consume: Any) -> None:
    consume(commit_effect)
    assert consume(commit_effect) is commit_effect
    with pytest.raises(ValueError):
        consume(do_nothing)


@pytest.fixture
def no_pokes(database: None, consume: Any) -> None:
    consume(commit_effect)
    forget_pokes()


@pytest.mark.usefixtures("no_pokes")
def test_messages_of_one_commit_wake_a_worker_once_it_is_committed(tenant: Any) -> None:
    with tenant_scope(tenant):
        for _ in range(10):
            enqueue(tenant)
        assert pokes() == 0
    assert pokes() == 1


@pytest.mark.usefixtures("no_pokes")
def test_message_that_is_rolled_back_wakes_nobody(tenant: Any) -> None:
    def take_back() -> None:
        with tenant_scope(tenant):
            enqueue(tenant)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        take_back()
    assert pokes() == 0


@pytest.mark.usefixtures("no_pokes")
def test_message_stands_when_the_broker_is_gone(tenant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(app.conf, "broker_write_url", "redis+socket:///nowhere/redis.sock")
        enqueue(tenant)
    assert state(tenant)[0] == "queued"
    assert pokes() == 0
