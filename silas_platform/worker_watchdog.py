"""Stop a worker that no longer receives messages from its broker or is too old for the database's schema, and kill
children of a worker that hang.

A consumer that reconnects after its broker died can be connected and deaf: the old connection's file descriptor is
closed late and removes the new one, of the same number, from the event loop. A timer of that loop checks now and then:
when messages waited at several checks in a row and this worker neither took one nor had anything to do, it stops
itself and its supervisor starts another. Rows are the truth, so only time is lost. The check is no thread, because
this process forks: a child would inherit, locked for ever, each lock that a thread held at that moment.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import psutil
import psycopg
import redis
from celery import bootsteps
from celery.signals import task_received
from celery.worker import state

from apps.bus import deadlines
from kernel.ratelimit.fixed_window import redis_client
from silas_platform.schema_version import fault_at
from silas_platform.settings import env

_log = logging.getLogger(__name__)
CHECK_SECONDS, MAX_MISSED_CHECKS = 5.0, 4
OVERDUE_CHECK_SECONDS = 1.0
SCHEMA_CHECK_SECONDS = 15.0
# A worker that reported this long ago counts as gone.
ALIVE_SECONDS = 4 * CHECK_SECONDS


@dataclass
class BrokerWatch:
    """Detects deafness. `waiting` counts messages that no worker took, and may raise while the broker is away; `busy`
    returns whether this worker has anything to do."""

    waiting: Callable[[], int]
    busy: Callable[[], bool]
    missed: int = 0

    def reset(self) -> None:
        self.missed = 0

    def is_deaf(self) -> bool:
        """Check once. Checks are counted, not seconds: a process that was suspended for a while is not deaf."""
        try:
            idle_while_waiting = not self.busy() and self.waiting() > 0
        except Exception:  # noqa: BLE001 (a broker that is away says nothing about this worker)
            idle_while_waiting = False
        self.missed = self.missed + 1 if idle_while_waiting else 0
        return self.missed >= MAX_MISSED_CHECKS


class Watchdog(bootsteps.StartStopStep):  # type: ignore[misc]  # Celery has no types
    """Consumer step that checks, while the worker is connected to its broker, for deafness, for a schema that is too
    new, and for overdue children."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, consumer: Any, **kwargs: object) -> None:
        super().__init__(consumer, **kwargs)
        self._queues = tuple(consumer.app.amqp.queues.consume_from)
        self._watch = BrokerWatch(partial(count_waiting, *self._queues), _is_busy)
        self._timers: list[Any] = []
        task_received.connect(self._message_received)

    def start(self, consumer: Any) -> None:
        self._watch.reset()
        report_alive(*self._queues)
        repeatedly = consumer.timer.call_repeatedly
        self._timers = [
            repeatedly(CHECK_SECONDS, stop_if_deaf, (self._watch,)),
            repeatedly(CHECK_SECONDS, report_alive, self._queues),
            repeatedly(SCHEMA_CHECK_SECONDS, stop_if_outdated),
            repeatedly(OVERDUE_CHECK_SECONDS, kill_overdue, (consumer.app, deadlines.SHARED)),
        ]

    def stop(self, consumer: Any) -> None:
        for timer in self._timers:
            timer.cancel()

    shutdown = stop

    def _message_received(self, **_: object) -> None:
        self._watch.reset()


def stop_if_deaf(watch: BrokerWatch) -> None:
    """Stop the worker with SIGTERM, so that it finishes what it has begun."""
    if watch.is_deaf():
        _log.critical("worker_deaf: messages wait and none arrives; this worker ends to be started again")
        os.kill(os.getpid(), signal.SIGTERM)


def stop_if_outdated() -> None:
    """Stop the worker with SIGTERM when a newer version migrated the database so that this one must not run on it. Its
    supervisor's next start is refused with the same sentence. Blocks the event loop for a few seconds at most."""
    try:
        fault = fault_at(env.text("DATABASE_URL"))
    except psycopg.Error:
        return  # a database that is away says nothing about this worker
    if fault:
        _log.critical("worker_outdated: %s", fault)
        os.kill(os.getpid(), signal.SIGTERM)


def count_waiting(*queues: str) -> int:
    """Count messages on these queues that no worker took. Blocks the event loop for at most half a second; raises what
    Redis raises."""
    pipeline = redis_client().pipeline(transaction=False)
    for queue in queues:
        pipeline.llen(queue)
    return sum(map(int, pipeline.execute()))


def report_alive(*queues: str) -> None:
    """Note in Redis that this worker serves these queues, for `/metrics`."""
    name, moment = f"{socket.gethostname()[:40]}:{os.getpid()}", time.time()
    pipeline = redis_client().pipeline(transaction=False)
    for queue in queues:
        pipeline.zadd(_alive_key(queue), {name: moment})
        pipeline.zremrangebyscore(_alive_key(queue), "-inf", moment - ALIVE_SECONDS)
    try:
        pipeline.execute()
    except redis.RedisError as error:
        _log.debug("worker_not_reported: %s", type(error).__name__)


def workers_alive(queue: str) -> int:
    """Count the worker programs that reported lately. Raises what Redis raises."""
    return int(redis_client().zcount(_alive_key(queue), time.time() - ALIVE_SECONDS, "+inf"))


def _alive_key(queue: str) -> str:
    return f"workers:alive:{queue}"


def kill_overdue(app: Any, shared: deadlines.Deadlines) -> None:
    """Kill overdue children of this process with SIGKILL, which they cannot ignore, and release their leases.

    Celery starts another child in their place and requeues their wake-up.
    """
    for slot, pid in shared.overdue():
        shared.clear(slot)
        # The number may belong to another process by now.
        if not _is_child(pid):
            continue
        _log.critical("worker_child_overdue pid=%s: it is ended", pid)
        os.kill(pid, signal.SIGKILL)
        from apps.bus.tasks import consumer_name  # needs the models, which are not loaded yet when this module is

        try:
            app.send_task("bus.give_back", [consumer_name(pid)], queue=next(iter(app.amqp.queues.consume_from)))
        except Exception as error:  # noqa: BLE001 (without a broker the leases expire by themselves)
            _log.warning("give_back_not_sent: %s", type(error).__name__)


def _is_child(pid: int) -> bool:
    try:
        return psutil.Process(pid).ppid() == os.getpid()
    except psutil.Error:
        return False


def _is_busy() -> bool:
    return bool(state.reserved_requests or state.active_requests)
