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
from apps.bus.models import QueueMessage
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.tenancy import in_scope, tenant_scope
from silas_platform.celery import app
from tests.factories.bus import forget_pokes, let_waits_pass, make_message, pokes

QUEUE = Queue.RUNTIME
MARK = "runtime:system_event"


def enqueue(tenant: Any, **fields: Any) -> QueueMessage:
    return make_message(tenant, queue=QUEUE, **fields)


def row(tenant: Any) -> QueueMessage:
    with tenant_scope(tenant):
        found: QueueMessage = QueueMessage.objects.get(queue=QUEUE)
    return found


def state(tenant: Any) -> tuple[str, int, str]:
    found = row(tenant)
    return found.state, found.attempts, found.reason


def effect() -> None:
    """Something that shows whether it was committed, and how often."""
    record(AuditEvent.STAFF_LOGGED_IN, actor="user:test")


def effects(tenant: Any) -> int:
    with tenant_scope(tenant):
        return AuditEntry.objects.filter(event=AuditEvent.STAFF_LOGGED_IN).count()


def steal(tenant: Any) -> None:
    """Let somebody else have the only message."""
    with tenant_scope(tenant):
        QueueMessage.objects.filter(queue=QUEUE).update(fence=1000)


async def commit_effect(delivery: Delivery) -> None:
    await delivery.commit(effect)


def test_handler_gets_its_message(tenant: Any, consume: Any, drain: Any) -> None:
    heard: list[Any] = []

    @consume
    async def handler(delivery: Delivery) -> None:
        heard.append((delivery.tenant_id, delivery.message.payload))

    enqueue(tenant, payload={"n": 1})
    drain()
    assert (tenant.pk, {"n": 1}) in heard


def test_message_that_was_handled_is_acked(tenant: Any, consume: Any, drain: Any) -> None:
    consume(commit_effect)
    enqueue(tenant)
    drain()
    assert state(tenant)[0] == "acked"


def test_effect_is_marked_under_the_consumers_name(tenant: Any, consume: Any, drain: Any) -> None:
    consume(commit_effect)
    message = enqueue(tenant)
    drain()
    with tenant_scope(tenant):
        assert services.has_processed(MARK, message.message_id)


def test_handler_that_commits_nothing_ends_the_delivery(tenant: Any, consume: Any, drain: Any) -> None:
    @consume
    async def handler(delivery: Delivery) -> None:
        pass

    enqueue(tenant)
    drain()
    assert state(tenant)[0] == "acked"


def test_commit_hands_back_what_its_step_returned(tenant: Any, consume: Any, drain: Any) -> None:
    heard: list[int] = []

    @consume
    async def handler(delivery: Delivery) -> None:
        heard.append(await delivery.commit(lambda: 7))

    enqueue(tenant)
    drain()
    assert 7 in heard


def test_handlers_effect_is_not_repeated_for_a_message_marked_already(tenant: Any, consume: Any, drain: Any) -> None:
    consume(commit_effect)
    message = enqueue(tenant)
    with tenant_scope(tenant):
        services.mark_processed(MARK, message.message_id)
    drain()
    assert (state(tenant)[0], effects(tenant)) == ("acked", 0)


def test_effect_that_a_rival_had_meanwhile_is_rolled_back_and_the_message_acked(
    tenant: Any, consume: Any, drain: Any
) -> None:
    @consume
    async def handler(delivery: Delivery) -> None:
        await in_scope(delivery.tenant_id, services.mark_processed, MARK, delivery.message.message_id)
        await delivery.commit(effect)

    enqueue(tenant)
    drain()
    assert (state(tenant)[0], effects(tenant)) == ("acked", 0)


def test_effect_of_a_former_holder_is_rolled_back(tenant: Any, consume: Any, drain: Any) -> None:
    @consume
    async def handler(delivery: Delivery) -> None:
        await asyncio.to_thread(steal, tenant)
        await delivery.commit(effect)

    enqueue(tenant)
    drain()
    assert (row(tenant).fence, effects(tenant)) == (1000, 0)


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
    assert (state(tenant), effects(tenant)) == (("queued", 1, "RuntimeError"), 0)


def test_handler_that_raises_gives_the_message_back(tenant: Any, consume: Any, drain: Any) -> None:
    @consume
    async def handler(delivery: Delivery) -> None:
        raise RuntimeError("my secret")

    enqueue(tenant)
    drain()
    assert state(tenant) == ("queued", 1, "RuntimeError")


def test_refusal_gives_its_code_as_the_reason(tenant: Any, consume: Any, drain: Any) -> None:
    @consume
    async def handler(delivery: Delivery) -> None:
        raise SilasError(ErrorCode.RECORD_CHANGED, "It changed.")

    enqueue(tenant)
    drain()
    assert state(tenant) == ("queued", 1, "record_changed")


def test_handler_that_always_raises_sees_the_message_five_times(tenant: Any, consume: Any, drain: Any) -> None:
    @consume
    async def handler(delivery: Delivery) -> None:
        raise RuntimeError

    enqueue(tenant)
    for _ in range(6):
        drain()
        let_waits_pass(tenant)
    assert state(tenant) == ("dead", 5, "RuntimeError")


def test_undeliverable_message_is_dead_at_once(tenant: Any, consume: Any, drain: Any) -> None:
    @consume
    async def handler(delivery: Delivery) -> None:
        raise Undeliverable(ErrorCode.NOT_FOUND, "It is gone.")

    enqueue(tenant)
    drain()
    assert state(tenant) == ("dead", 1, "not_found")


def test_message_of_a_kind_that_nobody_consumes_is_kept_for_later(tenant: Any, consume: Any, drain: Any) -> None:
    consume(commit_effect)
    registry.register(Queue.PLANNER, Kind.REPLAN_REQUEST, commit_effect)
    make_message(tenant, queue=Queue.PLANNER)
    drain()
    with tenant_scope(tenant):
        assert QueueMessage.objects.get().reason == "no_consumer"


def test_queue_that_nobody_consumes_is_left_alone(tenant: Any, consume: Any, drain: Any) -> None:
    consume(commit_effect)
    make_message(tenant, queue=Queue.EXECUTOR)
    drain()
    with tenant_scope(tenant):
        assert QueueMessage.objects.get().fence == 0


def test_deferred_message_waits_without_counting_a_failure(tenant: Any, consume: Any, drain: Any) -> None:
    @consume
    async def handler(delivery: Delivery) -> None:
        await in_scope(delivery.tenant_id, delivery.defer, 60, "path_in_use")

    enqueue(tenant)
    drain()
    assert state(tenant) == ("queued", 0, "path_in_use")


def test_one_message_that_fails_does_not_hold_up_another_scope(tenant: Any, consume: Any, drain: Any) -> None:
    done: list[str] = []

    @consume
    async def handler(delivery: Delivery) -> None:
        if delivery.message.content == "poison":
            raise RuntimeError
        done.append(delivery.message.message_id)

    enqueue(tenant, scope_id="a", content="poison")
    good = enqueue(tenant, scope_id="b")
    drain()
    assert good.message_id in done


def test_scope_keeps_its_order(tenant: Any, consume: Any, drain: Any) -> None:
    heard: list[int] = []

    @consume
    async def handler(delivery: Delivery) -> None:
        if delivery.tenant_id == tenant.pk:
            heard.append((delivery.message.payload or {})["n"])

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
    assert (state(tenant), effects(tenant)) == (("acked", 0, ""), 1)


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


async def other(delivery: Delivery) -> None:
    """Somebody else's."""


def test_second_consumer_of_a_kind_is_refused(consume: Any) -> None:
    consume(commit_effect)
    with pytest.raises(ValueError):
        consume(other)


def test_same_consumer_registered_twice_is_one(consume: Any) -> None:
    consume(commit_effect)
    assert consume(commit_effect) is commit_effect


@pytest.fixture
def no_pokes(database: None) -> None:
    forget_pokes()


def test_message_for_a_consumer_wakes_a_worker_once_it_is_committed(no_pokes: None, tenant: Any, consume: Any) -> None:
    consume(commit_effect)
    with tenant_scope(tenant):
        enqueue(tenant)
        before = pokes()
    assert (before, pokes()) == (0, 1)


def test_many_messages_of_one_commit_are_one_poke(no_pokes: None, tenant: Any, consume: Any) -> None:
    consume(commit_effect)
    with tenant_scope(tenant):
        for _ in range(10):
            enqueue(tenant)
    assert pokes() == 1


def take_back(tenant: Any) -> None:
    with tenant_scope(tenant):
        enqueue(tenant)
        raise RuntimeError


def test_message_that_is_rolled_back_wakes_nobody(no_pokes: None, tenant: Any, consume: Any) -> None:
    consume(commit_effect)
    with pytest.raises(RuntimeError):
        take_back(tenant)
    assert pokes() == 0


def test_message_stands_when_the_broker_is_gone(
    no_pokes: None, tenant: Any, consume: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    consume(commit_effect)
    with monkeypatch.context() as patch:
        patch.setattr(app.conf, "broker_write_url", "redis+socket:///nowhere/redis.sock")
        enqueue(tenant)
    assert (state(tenant)[0], pokes()) == ("queued", 0)
