"""Handlers of messages. Rooms register one for each queue and kind that they own.

    async def handle(delivery: Delivery) -> None: ...
    register(Queue.EXECUTOR, Kind.EXECUTION_REQUEST, handle)   # a message between agents
    register_job(Kind.CARD_EXPIRY, expire)                     # a job; its queue is `enums.QUEUE_OF`
    register_job(Kind.RETENTION, run, recurring=True)          # a job that `services.schedule` moves

Called when Django is set up (a room's `receivers.py`), so that every process knows the same consumers; only workers
run them. `deliveries` says what a handler may do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from apps.bus.enums import QUEUE_OF, WORKER_OF, Kind, Queue
from apps.bus.workers import Worker

if TYPE_CHECKING:
    from apps.bus.deliveries import Delivery
    from apps.bus.models import QueueMessage

Handler = Callable[["Delivery"], Awaitable[None]]
# Called with the message inside the bus's transaction: ends what the message stands for. Returns True when it has
# notified a person.
DeadLetterHandler = Callable[["QueueMessage"], bool]


@dataclass(frozen=True)
class Consumer:
    """A registered handler.

    `name` is the name that effects are marked under; it must not change while messages are queued. `recurring`: its
    messages are delivered again and again (`services.schedule`) and their effects are not marked. `max_concurrency`:
    more than 0 where a delivery mostly waits for the outside; a process runs at most that many, in threads.
    """

    name: str
    handler: Handler
    recurring: bool = False
    max_concurrency: int = 0


_consumers: dict[tuple[str, str], Consumer] = {}
_dead_letter_handlers: dict[str, DeadLetterHandler] = {}


def register(queue: Queue, kind: Kind, handler: Handler, *, recurring: bool = False, max_concurrency: int = 0) -> None:
    """Deliver every message of this kind on this queue to `handler`. Raises `ValueError` if it has another handler."""
    consumer = Consumer(f"{queue.value}:{kind.value}", handler, recurring, max_concurrency)
    if _consumers.setdefault((queue, kind), consumer).handler is not handler:
        raise ValueError(f"{kind} on {queue} has a consumer already")


def register_job(kind: Kind, handler: Handler, *, recurring: bool = False, max_concurrency: int = 0) -> None:
    """Deliver every job of this kind to `handler`; its queue is `enums.QUEUE_OF`."""
    register(QUEUE_OF[kind], kind, handler, recurring=recurring, max_concurrency=max_concurrency)


def on_dead_letter(handler: DeadLetterHandler, *kinds: Kind) -> None:
    """Call `handler` for each message of these kinds that failed for good.

    Where it returns False, and for kinds without one, the company's owners are notified (`signals.set_aside`). Raises
    `ValueError` when a kind has another handler.
    """
    for kind in kinds:
        if _dead_letter_handlers.setdefault(kind, handler) is not handler:
            raise ValueError(f"{kind} has a dead letter handler already")


def dead_letter_handler_of(kind: str) -> DeadLetterHandler | None:
    return _dead_letter_handlers.get(kind)


def consumer_of(queue: str, kind: str) -> Consumer | None:
    return _consumers.get((queue, kind))


def is_recurring(queue: str, kind: str) -> bool:
    consumer = _consumers.get((queue, kind))
    return consumer is not None and consumer.recurring


def names_on(queue: str) -> list[str]:
    """Names under which effects of this queue's messages are marked."""
    return sorted({consumer.name for (its_queue, _), consumer in _consumers.items() if its_queue == queue})


def queues_of(worker: Worker) -> tuple[Queue, ...]:
    """Queues that this kind of worker serves and that have a consumer."""
    return tuple(queue for queue, its_worker in WORKER_OF.items() if its_worker == worker and names_on(queue))
