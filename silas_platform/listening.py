"""End a worker that no longer hears its broker, and children of a worker that hang.

A consumer that comes back after its broker died can be connected and deaf: the descriptor of the old line is closed
late and takes the new one, of the same number, out of the event loop. That loop's timer looks now and then. Where
messages waited at several looks in a row and this worker neither took one nor had anything to do, it ends itself, and
whoever keeps it starts another: rows are the truth, so nothing is lost but time. No thread looks: this process forks
its children, and a child would inherit, held for ever, each lock that a thread held at that moment.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import psutil
from celery import bootsteps
from celery.signals import task_received
from celery.worker import state

from apps.bus import deadlines
from kernel.ratelimit.fixed_window import redis_client

_log = logging.getLogger(__name__)
LOOK_SECONDS, DEAF_LOOKS = 5.0, 4
END_SECONDS = 1.0


@dataclass
class Ear:
    """`waiting` counts the messages that nobody has taken, and may raise while the broker is away; `busy` says whether
    this worker has anything to do."""

    waiting: Callable[[], int]
    busy: Callable[[], bool]
    in_vain: int = 0

    def hear(self) -> None:
        self.in_vain = 0

    def is_deaf(self) -> bool:
        """One look. Looks are counted, not seconds: a process that was stopped for a while has not been deaf."""
        try:
            idle_beside_work = not self.busy() and self.waiting() > 0
        except Exception:  # noqa: BLE001 (a broker that is away tells nothing about us)
            idle_beside_work = False
        self.in_vain = self.in_vain + 1 if idle_beside_work else 0
        return self.in_vain >= DEAF_LOOKS


class Listening(bootsteps.StartStopStep):  # type: ignore[misc]  # Celery has no types
    """The step of a worker's consumer that looks: from when it has its broker until it loses it, each time anew."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, consumer: Any, **kwargs: Any) -> None:
        super().__init__(consumer, **kwargs)
        self._ear, self._timer = Ear(partial(waiting_at, *consumer.app.amqp.queues.consume_from), _is_busy), None
        task_received.connect(self._hear)

    def start(self, consumer: Any) -> None:
        self._ear.hear()
        self._timer = consumer.timer.call_repeatedly(LOOK_SECONDS, end_if_deaf, (self._ear,))

    def stop(self, consumer: Any) -> None:
        if self._timer is not None:
            self._timer.cancel()

    shutdown = stop

    def _hear(self, **_: Any) -> None:
        self._ear.hear()


def end_if_deaf(ear: Ear) -> None:
    """As whoever stops a worker would: what it has begun it ends."""
    if ear.is_deaf():
        _log.critical("worker_deaf: messages wait and none arrives; this worker ends to be started again")
        os.kill(os.getpid(), signal.SIGTERM)


def waiting_at(*queues: str) -> int:
    """How many messages the broker holds on these queues that nobody has taken. The event loop waits for it, half a
    second at most; raises what Redis raises."""
    return sum(int(redis_client().llen(queue)) for queue in queues)


class Ending(bootsteps.StartStopStep):  # type: ignore[misc]  # Celery has no types
    """The step that ends children which are busy beyond their deadline, whatever they do: they cannot refuse SIGKILL.
    Celery starts another child in their place and puts their wake-up in line again."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, consumer: Any, **kwargs: Any) -> None:
        super().__init__(consumer, **kwargs)
        self._timer: Any = None

    def start(self, consumer: Any) -> None:
        self._timer = consumer.timer.call_repeatedly(END_SECONDS, end_overdue, (consumer.app, deadlines.SHARED))

    def stop(self, consumer: Any) -> None:
        if self._timer is not None:
            self._timer.cancel()

    shutdown = stop


def end_overdue(app: Any, shared: deadlines.Deadlines) -> None:
    """Kill our children that should have been done by now, and have what they held given back."""
    for place, pid in shared.overdue():
        shared.clear(place)
        if not _is_child(pid):
            continue
        _log.critical("worker_child_overdue pid=%s: it is ended", pid)
        os.kill(pid, signal.SIGKILL)
        from apps.bus.tasks import consumer_name  # with the models, which are not loaded where this module is

        try:
            app.send_task("bus.give_back", [consumer_name(pid)], queue=next(iter(app.amqp.queues.consume_from)))
        except Exception as error:  # noqa: BLE001 (a broker that is away: the leases run out by themselves)
            _log.warning("give_back_not_sent: %s", type(error).__name__)


def _is_child(pid: int) -> bool:
    try:
        return psutil.Process(pid).ppid() == os.getpid()
    except psutil.Error:
        return False


def _is_busy() -> bool:
    return bool(state.reserved_requests or state.active_requests)
