"""Limit gate evaluations: at most 32 per turn over all triggers (spec 11), with one model.

Every gate that runs on a message, an answer or a call counts; the pieces of a streamed answer are one answer. Beyond
the limit, policy gates block and quality gates are skipped. Gates that run inside a transaction share a
`ComputeLimit` as well, because row locks must not be held for long."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from llm.judge import Opinion, Question, Ruling

# A gate that was not evaluated has not passed, so a policy gate beyond the limit blocks; a quality gate only advises. A
# rephrased answer is evaluated and counted again.
MOST_EVALUATIONS = 32
# For all gates of one transaction. A running gate is not interrupted: patterns have their own limit (`predicates`).
TRANSACTION_SECONDS = 1.0

# Asks the model, in a thread; may raise anything.
AskModel = Callable[[Question], Opinion | Ruling]


class ComputeLimit:
    """CPU time that gates may use together, in one thread. Waiting is not counted, so a busy machine does not make
    gates block."""

    def __init__(self, seconds: float = TRANSACTION_SECONDS, *, clock: Callable[[], float] = time.thread_time) -> None:
        self._left = seconds
        self._clock = clock

    @property
    def is_exhausted(self) -> bool:
        return self._left <= 0

    @contextmanager
    def measure(self) -> Iterator[None]:
        started = self._clock()
        try:
            yield
        finally:
            self._left -= self._clock() - started


class Allowance:
    """Evaluations left for one turn, shared by all its gates in any thread; `compute_limit` is used by one thread."""

    def __init__(self, *, ask: AskModel | None = None, compute_limit: ComputeLimit | None = None) -> None:
        self.ask = ask
        self.compute_limit = compute_limit
        self._left = MOST_EVALUATIONS
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Use one evaluation; False if none is left."""
        # Gates of one turn run in several threads.
        with self._lock:
            if self._left <= 0:
                return False
            self._left -= 1
            return True
