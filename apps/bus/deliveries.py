"""Deliver one message: run its handler outside any transaction, with the lease kept alive around it.

The effect commits together with the end of the delivery, exactly once: `await delivery.commit(step, …)`, or
`delivery.finish()` inside a scope of the handler's own. Returning without either ends the delivery without an effect;
an exception returns the message to its queue. A redelivery is a fresh call: what the lost one did not commit did not
happen. Handlers are registered with `registry.register`; only `worker` and `threads` call `lease_next` and `deliver`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import ParamSpec, TypeVar
from uuid import UUID

from django.db import Error as DatabaseError
from django.db import transaction

from apps.audit.enums import AuditEvent
from apps.bus import services
from apps.bus.enums import Queue
from apps.bus.models import QueueMessage
from apps.bus.registry import Handler, consumer_of, is_recurring, names_on
from apps.bus.schemas import AlreadyProcessed, Lease, LeaseLost
from kernel import tracing
from kernel.errors import SilasError, error_location
from kernel.tenancy import in_scope, with_retry
from kernel.tracing import ActiveSpan, SpanName

P = ParamSpec("P")
T = TypeVar("T")
_log = logging.getLogger(__name__)


class Undeliverable(SilasError):
    """Raised by a handler when retrying is pointless: the message becomes a dead letter, with `code` as its reason."""


@dataclass
class Delivery:
    """One attempt at one message, leased by this process. `name`: the consumer's, under which the effect is marked."""

    tenant_id: UUID
    lease: Lease
    name: str
    over: bool = field(default=False, init=False)

    @property
    def message(self) -> QueueMessage:
        return self.lease.message

    async def commit(self, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the synchronous `step` in a scope, end the delivery in the same transaction and return the step's result.

        Raises `LeaseLost` or `AlreadyProcessed`, after which the step is rolled back; do not catch either.
        """

        def whole() -> T:
            result = step(*args, **kwargs)
            self.finish()
            return result

        return await in_scope(self.tenant_id, whole)

    async def reschedule(self, step: Callable[P, datetime | None], *args: P.args, **kwargs: P.kwargs) -> None:
        """`commit` for a recurring job: `step` returns when it is due next, or None when it is not due any more."""

        def whole() -> None:
            due_at = step(*args, **kwargs)
            if due_at is None:
                self.finish()
            else:
                services.reschedule(self.lease, due_at)
                transaction.on_commit(self._ended)

        await in_scope(self.tenant_id, whole)

    def finish(self) -> None:
        """Mark the effect and end the delivery; inside the effect's own scope. Raises as `commit` does."""
        if not is_recurring(self.message.queue, self.message.kind):
            services.mark_processed(self.name, self.message.message_id)
        services.ack(self.lease)
        # Only a commit ends the delivery: after a rollback the message must still be acked or returned.
        transaction.on_commit(self._ended)

    def defer(self, seconds: float, reason: str) -> None:
        """Return the message to its queue for a while without counting a failure. Inside a scope."""
        services.defer(self.lease, seconds=seconds, reason=reason)
        transaction.on_commit(self._ended)

    def _ended(self) -> None:
        self.over = True


def recurring_handler(step: Callable[[UUID], datetime | None]) -> Handler:
    """Make the handler of a recurring job that is one short step on the row that its scope names.

    `step` gets that row's id and returns as in `Delivery.reschedule`.
    """

    async def handler(delivery: Delivery) -> None:
        await delivery.reschedule(step, UUID(delivery.message.subject))

    return handler


def lease_next(queue: Queue, *, scope_id: str, consumer: str, seconds: float) -> Lease | None:
    """Lease the scope's next message for the process `consumer`; inside a scope.

    Messages that already had their effect are acked and skipped (spec 19.2.3).
    """
    names = names_on(queue)
    while lease := services.lease(queue, consumer=consumer, scope_id=scope_id, names=names, seconds=seconds):
        if not lease.processed:
            services.record_step(AuditEvent.MESSAGE_TAKEN, lease.message)
            return lease
        services.ack(lease)
    return None


async def deliver(tenant_id: UUID, lease: Lease, *, seconds: float) -> None:
    """Deliver the message to its handler, and ack, nack or bury it unless the lease is lost."""
    message = lease.message
    # A recurring job has one row for all of its deliveries, so each begins a trace of its own.
    recurs = is_recurring(message.queue, message.kind)
    with tracing.span(
        SpanName.JOB,
        parent="" if recurs else message.trace_id,
        link=message.trace_id if recurs else "",
        label=message.kind,
        tenant=tenant_id,
        queue=message.queue,
        message=message.pk,
        kind=message.kind,
        attempt=message.attempts + 1,
    ) as span:
        await _deliver(tenant_id, lease, seconds, span)


async def _deliver(tenant_id: UUID, lease: Lease, seconds: float, span: ActiveSpan) -> None:
    async def end(step: Callable[..., object], **reason: str) -> None:
        """Make the final write. If it fails, the lease is lost or expires, and the message is delivered again."""
        with suppress(LeaseLost, DatabaseError):
            # No longer than the lease lasts: after that another process may have the message.
            await with_retry(tenant_id, seconds, step, lease, **reason)

    consumer = consumer_of(lease.message.queue, lease.message.kind)
    if consumer is None:
        await end(services.nack, reason="no_consumer")
        return
    delivery = Delivery(tenant_id, lease, consumer.name)
    try:
        async with keep_lease_alive(tenant_id, lease, seconds):
            await consumer.handler(delivery)
            if not delivery.over:
                await in_scope(tenant_id, delivery.finish)
    except LeaseLost as lost:
        span.fail(lost)
        _log.warning("delivery_lost message=%s", lease.message.pk)
    except AlreadyProcessed:
        await end(services.ack)
    except Undeliverable as refusal:
        span.fail(refusal)
        await end(services.dead_letter, reason=refusal.code)
    except Exception as error:  # noqa: BLE001 (after any error the message is retried)
        span.fail(error)
        _log.error("delivery_failed message=%s error=%s", lease.message.pk, error_location(error))
        reason = error.code if isinstance(error, SilasError) else type(error).__name__
        await end(services.nack, reason=reason)


@asynccontextmanager
async def keep_lease_alive(tenant_id: UUID, lease: Lease, seconds: float) -> AsyncIterator[None]:
    """Renew the lease after every third of its time while the block runs (contract silas 15, heartbeat).

    Once it is lost, another process may have the message: the block is cancelled and `LeaseLost` raised.
    """
    loop, worker, lost = asyncio.get_running_loop(), asyncio.current_task(), False
    assert worker is not None
    heartbeats: list[asyncio.Task[None]] = []

    async def beat() -> None:
        nonlocal lost
        while True:
            try:
                await in_scope(tenant_id, services.heartbeat, lease, seconds)
            except LeaseLost:
                lost = True
                worker.cancel()
                return
            # The lease outlives three beats, so the next one may still be in time.
            except DatabaseError as error:
                _log.warning("heartbeat_failed message=%s error=%s", lease.message.pk, error_location(error))
            await asyncio.sleep(seconds / 3)

    # Most blocks end before the first renewal, so the task is created only then.
    first = loop.call_later(seconds / 3, lambda: heartbeats.append(loop.create_task(beat())))
    try:
        yield
    except asyncio.CancelledError:
        if lost:
            # The cancellation was ours and is answered by `LeaseLost`; the task would otherwise still count as
            # cancelled.
            worker.uncancel()
            raise LeaseLost from None
        raise
    finally:
        first.cancel()
        for heartbeat in heartbeats:
            heartbeat.cancel()
