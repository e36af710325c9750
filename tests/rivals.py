"""Several callers at once, each in its own thread and connection, let go together, or one in the middle of another."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from typing import Any, TypeVar

from django.db import connection

T = TypeVar("T")


def race(*callers: Callable[[], T]) -> list[T | Exception]:
    """What each caller returned or raised, in the order given."""
    start = Barrier(len(callers))

    def run(caller: Callable[[], T]) -> Any:
        try:
            start.wait(timeout=60)
            return caller()
        except Exception as error:  # noqa: BLE001 (what a rival raised is its answer)
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(len(callers)) as pool:
        return list(pool.map(run, callers))


def interrupted(first: Callable[[Callable[[], None]], T], second: Callable[[], T]) -> list[T | Exception]:
    """What both returned or raised. `first` gets a function that it calls in the middle of its transaction: `second`
    starts then, and `first` goes on as soon as `second` waits for a lock of its, or is over."""
    reached, over = Event(), Event()

    def meet() -> None:
        reached.set()
        while not over.is_set() and not _somebody_waits():
            time.sleep(0.01)

    def come_between() -> T:
        reached.wait(timeout=60)
        try:
            return second()
        finally:
            over.set()

    return race(lambda: first(meet), come_between)


def _somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
        return bool(cursor.fetchone()[0])
