"""Limit how often something may be tried, with counters in the cache that expire by themselves.

An attempt is counted before it is made, in one atomic step, so that concurrent attempts cannot exceed the limit; a
harmless attempt can be refunded. Where the cache is away `consume` and `aconsume` raise what it raises, and
`try_consume` and `atry_consume` say so: the caller decides what a missing count means. Async code uses the latter of
each pair, which counts all limits in one round trip. Keys carry the room's name and, where there is one, the tenant.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from django.conf import settings
from django.core.cache import cache

from kernel.redis_servers import connect
from kernel.tenancy.threads import prioritize

P = ParamSpec("P")
Answer = TypeVar("Answer")
_log = logging.getLogger(__name__)

_TIMEOUT_SECONDS = 0.5
# The braces keep the limits that one script counts together on one server of a Redis Cluster.
_PREFIX = "{silas.throttle}:"
# All limits or none: what is refused under one is counted under no other. Answers with the place of the limit that is
# used up, from 1, and how many milliseconds it stays so.
_CONSUME = """
for i, key in ipairs(KEYS) do
    if tonumber(redis.call('GET', key) or '0') >= tonumber(ARGV[i]) then
        return {i, redis.call('PTTL', key)}
    end
end
for i, key in ipairs(KEYS) do
    if redis.call('INCR', key) == 1 then redis.call('PEXPIRE', key, ARGV[#KEYS + i]) end
end
return {0, 0}
"""


# Answers with how many attempts are left, -1 when this one was one too many, and how many milliseconds the window runs.
_COUNT = """
local used = tonumber(redis.call('GET', KEYS[1]) or '0')
if used >= tonumber(ARGV[1]) then return {-1, redis.call('PTTL', KEYS[1])} end
if redis.call('INCR', KEYS[1]) == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return {tonumber(ARGV[1]) - used - 1, redis.call('PTTL', KEYS[1])}
"""


@dataclass(frozen=True)
class Limit:
    """At most `most` attempts of `key` in `seconds`, counted from the first of them."""

    key: str
    most: int
    seconds: int


@dataclass(frozen=True)
class Exceeded:
    """`limit` is used up for another `seconds`."""

    limit: Limit
    seconds: float


@dataclass(frozen=True)
class Standing:
    """How far `limit` is used up: `left` attempts (-1: this one was refused) in the next `seconds`."""

    limit: Limit
    left: int
    seconds: float


@dataclass(frozen=True)
class Unavailable:
    """Nothing could be counted."""


async def atry_consume(limits: Sequence[Limit], *, otherwise: str) -> Exceeded | Unavailable | None:
    """`aconsume` that logs `otherwise` and the error's name where nothing can be counted."""
    try:
        return await aconsume(limits)
    except Exception as error:  # noqa: BLE001 (any error of Redis: the caller decides what a missing count means)
        _log.warning("%s error=%s", otherwise, type(error).__name__)
        return Unavailable()


async def aconsume(limits: Sequence[Limit]) -> Exceeded | None:
    """`consume` for async code, in one round trip; says how long to wait. Raises what `call_redis` raises."""
    return await call_redis(_consume, tuple(limits))


async def call_redis(ask: Callable[P, Answer], *args: P.args, **named: P.kwargs) -> Answer:
    """Call Redis in a thread pool of its own, so that no slow database step delays it.

    Raises what Redis raises, and `TimeoutError` if earlier calls wait for a Redis that hangs.
    """
    async with asyncio.timeout(2 * _TIMEOUT_SECONDS):
        answer = asyncio.get_running_loop().run_in_executor(_threads, functools.partial(ask, *args, **named))
        # A person waits for this count.
        return await prioritize(answer)


def _consume(limits: tuple[Limit, ...]) -> Exceeded | None:
    keys = [f"{_PREFIX}{limit.key}" for limit in limits]
    values = [*(limit.most for limit in limits), *(limit.seconds * 1000 for limit in limits)]
    place, left = redis_client().eval(_CONSUME, len(keys), *keys, *values)
    return Exceeded(limits[place - 1], max(left, 0) / 1000) if place else None


_threads = ThreadPoolExecutor(4, thread_name_prefix="throttle")


def redis_client() -> Any:
    return _redis(settings.REDIS_URL)


@functools.cache
def _redis(url: str) -> Any:
    return connect(url, socket_timeout=_TIMEOUT_SECONDS, socket_connect_timeout=_TIMEOUT_SECONDS)


def consume(limits: Iterable[Limit]) -> Limit | None:
    """Count one attempt under every limit and return None; or count nothing and return the exhausted limit."""
    counted: list[Limit] = []
    for limit in limits:
        counted.append(limit)
        if _increment(limit) > limit.most:
            # The refused attempt counts under none of the limits, this one included.
            refund(counted)
            return limit
    return None


def try_consume(limits: Iterable[Limit], *, otherwise: str) -> Limit | Unavailable | None:
    """`consume` that logs `otherwise` and the error's name where nothing can be counted."""
    try:
        return consume(limits)
    except Exception as error:  # noqa: BLE001 (any error of the cache: the caller decides what a missing count means)
        _log.warning("%s error=%s", otherwise, type(error).__name__)
        return Unavailable()


def try_count(limit: Limit, *, otherwise: str) -> Standing | Unavailable:
    """Count one attempt unless the limit is used up, and say what is left. Logs `otherwise` and the error's name where
    nothing can be counted."""
    try:
        args = (limit.most, limit.seconds * 1000)
        left, milliseconds = redis_client().eval(_COUNT, 1, f"{_PREFIX}{limit.key}", *args)
    except Exception as error:  # noqa: BLE001 (any error of Redis: the caller decides what a missing count means)
        _log.warning("%s error=%s", otherwise, type(error).__name__)
        return Unavailable()
    return Standing(limit, left, max(milliseconds, 0) / 1000)


def try_refund(limits: Iterable[Limit], *, otherwise: str) -> None:
    """`refund` that logs `otherwise` where the cache is away: one attempt too many stays counted."""
    try:
        refund(limits)
    except Exception as error:  # noqa: BLE001 (any error of the cache: a count that stays expires by itself)
        _log.warning("%s error=%s", otherwise, type(error).__name__)


def refund(limits: Iterable[Limit]) -> None:
    """Take one attempt back under each limit; an expired counter needs nothing."""
    for limit in limits:
        with suppress(ValueError):
            cache.decr(limit.key)


def _increment(limit: Limit) -> int:
    cache.add(limit.key, 0, limit.seconds)
    try:
        return cache.incr(limit.key)
    except ValueError:  # it ran out between the two
        cache.add(limit.key, 0, limit.seconds)
        return cache.incr(limit.key)
