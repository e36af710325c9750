"""The handlers of messages. Rooms above register one for each queue and kind that is theirs.

    async def carry_out(delivery: Delivery) -> None: ...
    register(Queue.EXECUTOR, Kind.EXECUTION_REQUEST, carry_out)
    register_later(Kind.CARD_EXPIRY, expire)                   # its queue is `enums.QUEUE_OF`
    register_later(Kind.RETENTION, clear, standing=True)       # `services.schedule`

Called when Django is set up (a room's `receivers.py`), so that every process knows the same consumers; only workers
run them. What a handler may do stands in `deliveries`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from apps.bus.enums import QUEUE_OF, WORKER_OF, Kind, Queue, Worker

if TYPE_CHECKING:
    from apps.bus.deliveries import Delivery
    from apps.bus.models import QueueMessage

Handler = Callable[["Delivery"], Awaitable[None]]


@dataclass(frozen=True)
class Consumer:
    """`name` is what effects are marked under; it must not change while messages are under way. `standing`: its
    messages are delivered again and again (`services.schedule`), and their effects are not marked. `at_once`: more than
    0 where a delivery mostly waits for the outside; so many run beside each other in threads of a process."""

    name: str
    handler: Handler
    standing: bool = False
    at_once: int = 0


# (message): what it stands for ends with it, in the bus's transaction; True when a person has been told of that.
Teller = Callable[["QueueMessage"], bool]

_consumers: dict[tuple[str, str], Consumer] = {}
_tellers: dict[str, Teller] = {}


def register(
    queue: Queue, kind: Kind, handler: Handler, *, name: str = "", standing: bool = False, at_once: int = 0
) -> None:
    """Hand every message of this kind on this queue to `handler`. Raises `ValueError` when another one is registered.

    The consumer's `name` is made of queue and kind unless it is given.
    """
    consumer = Consumer(name or f"{queue.value}:{kind.value}", handler, standing, at_once)
    if _consumers.setdefault((queue, kind), consumer).handler is not handler:
        raise ValueError(f"{kind} on {queue} has a consumer already")


def register_later(kind: Kind, handler: Handler, *, standing: bool = False, at_once: int = 0) -> None:
    """Hand every message of this kind of work that is due later to `handler`."""
    register(QUEUE_OF[kind], kind, handler, standing=standing, at_once=at_once)


def when_dead(teller: Teller, *kinds: Kind) -> None:
    """Have `teller` called for each message of these kinds that failed for good. Of what it tells nobody, and of kinds
    without one, the company's owners are told (`signals.set_aside`). Raises `ValueError` where another one stands."""
    for kind in kinds:
        if _tellers.setdefault(kind, teller) is not teller:
            raise ValueError(f"{kind} has a teller already")


def teller_of(kind: str) -> Teller | None:
    return _tellers.get(kind)


def unregister(queue: Queue, kind: Kind) -> None:
    _consumers.pop((queue, kind), None)


def consumer_of(queue: str, kind: str) -> Consumer | None:
    return _consumers.get((queue, kind))


def is_standing(queue: str, kind: str) -> bool:
    consumer = _consumers.get((queue, kind))
    return consumer is not None and consumer.standing


def names_on(queue: str) -> list[str]:
    """The names under which effects of this queue's messages are marked."""
    return sorted({consumer.name for (its, _), consumer in _consumers.items() if its == queue})


def queues_of(worker: Worker) -> tuple[Queue, ...]:
    """The queues that this kind of worker serves and on which anything is carried out."""
    return tuple(queue for queue, its in WORKER_OF.items() if its == worker and names_on(queue))
