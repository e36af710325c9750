"""Limit senders within one process, in bounded memory: token buckets by key, and penalties that double.

These are checked for every connection, so they need no round trip. When there are too many keys, the least recently
used ones are dropped.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

MAX_KEYS = 20_000
_Clock = Callable[[], float]


class TokenBuckets:
    """For each key a bucket of `burst` tokens, refilled at `a_second`."""

    def __init__(self, burst: float, a_second: float, *, clock: _Clock = time.monotonic) -> None:
        self._burst, self._a_second, self._clock = burst, a_second, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> bool:
        """Take a token, if there is one; attempts without a token cost nothing."""
        now = self._clock()
        left, at = self._left.pop(name, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._a_second)
        _keep(self._left, name, (left - 1 if left >= 1 else left, now))
        return left >= 1


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


def _keep(kept: OrderedDict[str, tuple[float, float]], name: str, value: tuple[float, float]) -> None:
    kept[name] = value
    if len(kept) > MAX_KEYS:
        kept.popitem(last=False)
