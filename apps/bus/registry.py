"""Who carries out which messages? Rooms above register one handler for each queue and kind that is theirs.

    async def carry_out(delivery: Delivery) -> None: ...
    register(Queue.EXECUTOR, Kind.EXECUTION_REQUEST, carry_out)

Called when Django is set up (a room's `receivers.py`), so that every process knows the same consumers; only workers
run them. What a handler may do stands in `deliveries`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from apps.bus.enums import Kind, Queue

if TYPE_CHECKING:
    from apps.bus.deliveries import Delivery
    from apps.bus.models import QueueMessage

Handler = Callable[["Delivery"], Awaitable[None]]


@dataclass(frozen=True)
class Consumer:
    """`name` is what effects are marked under; it must not change while messages are under way."""

    name: str
    handler: Handler


# (message): what it stands for ends with it, in the bus's transaction; True when a person has been told of that.
Teller = Callable[["QueueMessage"], bool]

_consumers: dict[tuple[str, str], Consumer] = {}
_tellers: dict[str, Teller] = {}


def register(queue: Queue, kind: Kind, handler: Handler, *, name: str = "") -> None:
    """Hand every message of this kind on this queue to `handler`. Raises `ValueError` where another one stands.

    The consumer's `name` is made of queue and kind unless it is given.
    """
    standing = _consumers.setdefault((queue, kind), Consumer(name or f"{queue.value}:{kind.value}", handler))
    if standing.handler is not handler:
        raise ValueError(f"{kind} on {queue} has a consumer already")


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


def names_on(queue: str) -> list[str]:
    """Under which names this queue's messages are marked."""
    return sorted({consumer.name for (its, _), consumer in _consumers.items() if its == queue})


def consumed_queues() -> tuple[Queue, ...]:
    """The queues of which workers carry out anything; the proxy's belongs to web processes (architecture,
    Processes)."""
    return tuple(Queue(name) for name in sorted({queue for queue, _ in _consumers} - {Queue.PROXY}))
