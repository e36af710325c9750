"""Run short synchronous database steps from async code, in a small pool of threads.

A transaction cannot be opened in async code, and Channels' own helper runs a whole process in one thread. Each step
returns its connection to the pool before it answers, so that waiting conversations hold none.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection

from kernel.tenancy.scope import leave_scope, tenant_scope

P = ParamSpec("P")
T = TypeVar("T")

_PAUSE_SECONDS = 0.5


_LONGEST_WAIT_SECONDS = 0.25
_waited_for: set[asyncio.Future[Any]] = set()
_letting_pass: set[asyncio.Future[None]] = set()

# A step that a person is waiting for (saving a message) goes before one that may take longer (its answer): the
# low-priority pool has fewer threads, so that many running turns cannot delay an acknowledgement.
_slow_lane: contextvars.ContextVar[bool] = contextvars.ContextVar("silas_slow_lane", default=False)


def use_low_priority_pool() -> None:
    """Let every later database step of the current task, and of tasks it starts, yield to others."""
    _slow_lane.set(True)


@functools.cache
def _pool(slow: bool) -> ThreadPoolExecutor:
    threads = settings.DATABASE_SLOW_THREADS if slow else settings.DATABASE_THREADS
    return ThreadPoolExecutor(threads, thread_name_prefix="database-slow" if slow else "database")


async def in_thread(step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run the synchronous `step` in the database pool; it opens the scope it needs itself."""

    def run() -> T:
        # The copied context names the caller's scope, which is a transaction on another connection.
        leave_scope()
        try:
            return step(*args, **kwargs)
        finally:
            connection.close()

    # An executor starts with an empty context, unlike `asyncio.to_thread`; the trace and the language go with the step.
    slow, context = _slow_lane.get(), contextvars.copy_context()
    if slow:
        await _let_others_pass()
    work = asyncio.get_running_loop().run_in_executor(_pool(slow), functools.partial(context.run, run))
    return await (work if slow else prioritize(work))


def prioritize(work: asyncio.Future[T]) -> asyncio.Future[T]:
    """Let low-priority steps wait until this is done, because a person is waiting for it."""
    _waited_for.add(work)
    work.add_done_callback(_done)
    return work


async def _let_others_pass() -> None:
    """Wait until no high-priority step is waiting, but only for a limited time."""
    if not _waited_for:
        return
    passed = asyncio.get_running_loop().create_future()
    _letting_pass.add(passed)
    try:
        await asyncio.wait_for(passed, _LONGEST_WAIT_SECONDS)
    except TimeoutError:
        pass
    finally:
        _letting_pass.discard(passed)


def _done(work: asyncio.Future[Any]) -> None:
    _waited_for.discard(work)
    if not _waited_for:
        for passed in _letting_pass:
            if not passed.done():
                passed.set_result(None)


async def in_scope(tenant: object, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `step` in the database pool inside `tenant_scope(tenant)`: one step, one transaction."""

    def scoped() -> T:
        with tenant_scope(tenant):
            return step(*args, **kwargs)

    return await in_thread(scoped)


async def with_retry(tenant: object, seconds: float, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """`in_scope`, repeated for `seconds` while the database is away; after that the last error is raised.

    Only for a step that may run twice: a commit whose answer was lost with the connection may have happened.
    """
    give_up = time.monotonic() + seconds
    while True:
        try:
            return await in_scope(tenant, step, *args, **kwargs)
        except (OperationalError, InterfaceError):
            if time.monotonic() >= give_up:
                raise
        await asyncio.sleep(_PAUSE_SECONDS)
