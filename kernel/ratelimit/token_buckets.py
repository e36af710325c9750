"""Limit senders within one process, in bounded memory: token buckets, alone and by key, and penalties that double.

These are checked for every connection, so they need no round trip. When there are too many keys, the least recently
used ones are dropped.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

MAX_KEYS = 20_000
_Clock = Callable[[], float]
Kept = TypeVar("Kept")


class TokenBucket:
    """`burst` tokens at once, and one more every `1 / a_second` seconds after them."""

    def __init__(self, burst: float, a_second: float, *, clock: _Clock = time.monotonic) -> None:
        self._burst, self._a_second, self._clock = burst, a_second, clock
        self._left, self._at = float(burst), clock()

    def wait(self) -> float:
        """0 when there is a token, which takes it; else the seconds until there is one."""
        now = self._clock()
        self._left = min(self._burst, self._left + (now - self._at) * self._a_second)
        self._at = now
        if self._left < 1:
            return (1 - self._left) / self._a_second if self._a_second else math.inf
        self._left -= 1
        return 0


class TokenBuckets:
    """For each key a bucket of `burst` tokens, refilled at `a_second`."""

    def __init__(self, burst: float, a_second: float, *, clock: _Clock = time.monotonic) -> None:
        self._burst, self._a_second, self._clock = burst, a_second, clock
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def take(self, name: str) -> bool:
        """Take a token, if there is one; attempts without a token cost nothing."""
        bucket = self._buckets.pop(name, None) or TokenBucket(self._burst, self._a_second, clock=self._clock)
        _keep(self._buckets, name, bucket)
        return bucket.wait() == 0


class Penalties:
    """Each penalty of a key is twice as long as the one before, from `first` to `longest` seconds.

    After `longest` seconds without one it starts at `first` again.
    """

    def __init__(self, *, first: float = 5.0, longest: float = 600.0, clock: _Clock = time.monotonic) -> None:
        self._first, self._longest, self._clock = first, longest, clock
        self._until: OrderedDict[str, tuple[float, float]] = (
            OrderedDict()
        )  # by name: how long the last one was, its end

    def punish(self, name: str) -> None:
        now = self._clock()
        last, until = self._until.pop(name, (0.0, 0.0))
        following = min(self._longest, last * 2) if last and now < until + self._longest else self._first
        _keep(self._until, name, (following, now + following))

    def seconds_left(self, name: str) -> float:
        _, until = self._until.get(name, (0.0, 0.0))
        return max(0.0, until - self._clock())


def _keep(kept: OrderedDict[str, Kept], name: str, value: Kept) -> None:
    kept[name] = value
    # Keys come from outside: without a bound anyone could fill the memory with new ones.
    if len(kept) > MAX_KEYS:
        kept.popitem(last=False)
