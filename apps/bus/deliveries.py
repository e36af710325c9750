"""Carry out one message: its handler runs outside of every transaction, with the lease kept alive around it.

The effect commits together with the end of the delivery, exactly once: `await delivery.commit(step, …)`, or
`delivery.finish()` inside a scope of the handler's own. Coming back without either ends the delivery without an effect;
an exception gives the message back. A redelivery is a fresh call: what the lost one had not committed did not happen.
Handlers are registered with `registry.register`; `worker` calls `lease_next` and `deliver`, and nobody else does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
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
from kernel.errors import SilasError, error_location
from kernel.tenancy import in_scope, with_retry

P = ParamSpec("P")
T = TypeVar("T")
_log = logging.getLogger(__name__)


class Undeliverable(SilasError):
    """Raised by a handler: no further try would go better. The message is dead at once, with `code` as its reason."""


@dataclass
class Delivery:
    """One try at one message, held by this process. `name` is the consumer's: the effect is marked under it."""

    tenant_id: UUID
    lease: Lease
    name: str
    over: bool = field(default=False, init=False)

    @property
    def message(self) -> QueueMessage:
        return self.lease.message

    async def commit(self, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the synchronous `step` in a scope and end the delivery in the same transaction; returns what it returned.

        Raises `LeaseLost` or `AlreadyProcessed`, with nothing of the step done; let both through.
        """

        def whole() -> T:
            found = step(*args, **kwargs)
            self.finish()
            return found

        return await in_scope(self.tenant_id, whole)

    async def reschedule(self, step: Callable[P, datetime | None], *args: P.args, **kwargs: P.kwargs) -> None:
        """`commit` for a standing message: `step` returns when it is due next, or None where it is not any more."""

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
        transaction.on_commit(self._ended)

    def defer(self, seconds: float, reason: str) -> None:
        """Give the message back for a while, which is no failure: what it needs is in use. Inside a scope."""
        services.defer(self.lease, seconds=seconds, reason=reason)
        transaction.on_commit(self._ended)

    def _ended(self) -> None:
        self.over = True


def recurring_handler(step: Callable[[UUID], datetime | None]) -> Handler:
    """The handler of a standing message whose work is one short step on the row that its scope names: `step` gets that
    row's id and returns as in `Delivery.reschedule`."""

    async def handler(delivery: Delivery) -> None:
        await delivery.reschedule(step, UUID(delivery.message.subject))

    return handler


def lease_next(queue: Queue, *, scope_id: str, consumer: str, seconds: float) -> Lease | None:
    """The scope's next delivery for the process `consumer`; what had its effect before is acked and passed by (spec
    19.2.3). Inside a scope."""
    names = names_on(queue)
    while lease := services.lease(queue, consumer=consumer, scope_id=scope_id, names=names, seconds=seconds):
        if not lease.processed:
            services.record_step(AuditEvent.MESSAGE_TAKEN, lease.message)
            return lease
        services.ack(lease)
    return None


async def deliver(tenant_id: UUID, lease: Lease, *, seconds: float) -> None:
    """One delivery to its end: done, given back, dead, or taken from us; then nothing more of it is ours to write."""
    found = consumer_of(lease.message.queue, lease.message.kind)
    if found is None:
        await _give_back(tenant_id, lease, seconds, "no_consumer")
        return
    delivery = Delivery(tenant_id, lease, found.name)
    try:
        await _carry_out(delivery, found.handler, seconds)
    except LeaseLost:
        _log.warning("delivery_lost message=%s", lease.message.pk)
    except AlreadyProcessed:
        await _quietly(with_retry(tenant_id, seconds, services.ack, lease))
    except Undeliverable as refusal:
        await _quietly(with_retry(tenant_id, seconds, services.dead_letter, lease, refusal.code))
    except Exception as error:  # noqa: BLE001 (whatever it was, the message is owed again)
        _log.error("delivery_failed message=%s error=%s", lease.message.pk, error_location(error))
        await _give_back(tenant_id, lease, seconds, _reason(error))


async def _carry_out(delivery: Delivery, handler: Handler, seconds: float) -> None:
    async with keep_lease_alive(delivery.tenant_id, delivery.lease, seconds):
        await handler(delivery)
        if not delivery.over:
            await in_scope(delivery.tenant_id, delivery.finish)


def _reason(error: Exception) -> str:
    return error.code if isinstance(error, SilasError) else type(error).__name__


async def _give_back(tenant_id: UUID, lease: Lease, seconds: float, reason: str) -> None:
    await _quietly(with_retry(tenant_id, seconds, services.nack, lease, reason=reason))


async def _quietly(last_word: Awaitable[None]) -> None:
    """Say it if it is still ours to say; otherwise the lease runs out and somebody else goes on."""
    with suppress(LeaseLost, DatabaseError):
        await last_word


@asynccontextmanager
async def keep_lease_alive(tenant_id: UUID, lease: Lease, seconds: float) -> AsyncIterator[None]:
    """Renew the lease at every third of it while the block runs (contract silas 15, heartbeat); most blocks end before
    the first. Once it is lost somebody else has the message: the block is cancelled and `LeaseLost` raised."""
    loop, worker, lost = asyncio.get_running_loop(), asyncio.current_task(), False
    assert worker is not None
    hearts: list[asyncio.Task[None]] = []

    async def beat() -> None:
        nonlocal lost
        while True:
            try:
                await in_scope(tenant_id, services.heartbeat, lease, seconds)
            except LeaseLost:
                lost = True
                worker.cancel()
                return
            except DatabaseError as error:
                _log.warning("heartbeat_failed message=%s error=%s", lease.message.pk, error_location(error))
            await asyncio.sleep(seconds / 3)

    first = loop.call_later(seconds / 3, lambda: hearts.append(loop.create_task(beat())))
    try:
        yield
    except asyncio.CancelledError:
        if lost:
            worker.uncancel()
            raise LeaseLost from None
        raise
    finally:
        first.cancel()
        for heart in hearts:
            heart.cancel()
