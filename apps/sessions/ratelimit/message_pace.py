"""Limit how fast one presence may send: a burst, then a steady rate; beyond it the visitor is told to wait.

Counted in the process that holds the socket, so that it needs nothing else. Limits over all processes are in `limits`.
"""

from __future__ import annotations

import time
from collections.abc import Callable

TYPING_BURST, TYPING_A_SECOND = 5, 1.0


class Pace:
    """`burst` words at once, and one more every `1 / a_second` seconds after them."""

    def __init__(self, burst: int, a_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._burst, self._a_second, self._clock = burst, a_second, clock
        self._left, self._at = float(burst), clock()

    def wait(self) -> float:
        """0 when a word may be said now, which counts it; else the seconds until it may."""
        now = self._clock()
        self._left = min(self._burst, self._left + (now - self._at) * self._a_second)
        self._at = now
        if self._left < 1:
            return (1 - self._left) / self._a_second
        self._left -= 1
        return 0
