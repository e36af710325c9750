"""A Celery worker as in production, with a consumer and a bare task beside it that report when their first line ran.

Celery loads this module as the worker's application; the bench starts it and listens on Redis. Both read one machine's
clock.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import redis

from bench.stage import READY_SECONDS, Stage
from silas_platform.celery import app
from silas_platform.up.environment import for_program

HEARD = "bench:heard"
PATIENCE_SECONDS = 20


@dataclass
class Worker:
    client: Any

    def until_heard(self, say: Callable[[], None]) -> float:
        """Seconds from just before `say` until the worker's first line."""
        time.sleep(0.05)  # idle
        said = time.time()
        say()
        found = self.client.blpop(HEARD, PATIENCE_SECONDS)
        if found is None:
            raise RuntimeError("the worker did not answer")
        return float(found[1]) - said

    def send_noop(self) -> None:
        noop.delay()


@contextlib.contextmanager
def worker(ready: Stage, module: str) -> Iterator[Worker]:
    """A running worker that has answered once; `module` is the application it loads."""
    env = for_program({**os.environ, **ready.env}, "worker")
    size = ["--loglevel=ERROR", "--concurrency", "2", "--without-gossip", "--without-mingle"]
    _consume()  # who enqueues wakes workers for what is consumed
    process = subprocess.Popen([sys.executable, "-m", "celery", "-A", module, "worker", *size], env=env)
    try:
        started = Worker(redis.Redis.from_url(ready.env["REDIS_URL"], socket_timeout=READY_SECONDS + 5))
        started.send_noop()
        if started.client.blpop(HEARD, READY_SECONDS) is None:
            raise RuntimeError("the worker did not start")
        yield started
    finally:
        process.terminate()
        process.wait(30)


@app.task(name="bench.noop")
def noop() -> None:
    _say_when(time.time())


def _say_when(moment: float) -> None:
    redis.Redis.from_url(os.environ["REDIS_URL"]).rpush(HEARD, repr(moment))


async def first_line(delivery: Any) -> None:
    _say_when(time.time())


def _consume() -> None:
    from apps.bus.enums import Kind, Queue
    from apps.bus.registry import register

    register(Queue.RUNTIME, Kind.SYSTEM_EVENT, first_line)


app.on_after_finalize.connect(lambda **_: _consume(), weak=False)
