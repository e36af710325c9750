"""How much may gates ask in one turn, and whom? At most 32 evaluations over all triggers (spec 11), and one model.

Counted is every gate that is asked about a message, an answer or a call; pieces of an answer that still grows are the
same answer. What comes beyond the 32 is a no in the policy lane, and left out in the quality lane (ADR 0034). Gates
that are asked inside a transaction share a `ComputeLimit` as well: who holds rows must not compute for long.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kernel.llm.judge import Opinion, Question, Ruling

MOST_EVALUATIONS = 32
# For all gates that one transaction asks. A gate that has begun ends: patterns have their own bound (`predicates`).
TRANSACTION_SECONDS = 1.0

# Asks the model of whoever runs the gates, in a thread; raises whatever goes wrong.
AskModel = Callable[[Question], Opinion | Ruling]


class ComputeLimit:
    """How long gates may compute together, in one thread. Computing is counted, not waiting: a busy machine makes no
    gate say no."""

    def __init__(self, seconds: float = TRANSACTION_SECONDS, *, clock: Callable[[], float] = time.thread_time) -> None:
        self._left = seconds
        self._clock = clock

    @property
    def is_exhausted(self) -> bool:
        return self._left <= 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        began = self._clock()
        try:
            yield
        finally:
            self._left -= self._clock() - began


class Allowance:
    """Evaluations left for one turn, shared by all its gates in any thread; `compute_limit` is used by one thread."""

    def __init__(
        self, *, ask: AskModel | None = None, most: int = MOST_EVALUATIONS, compute_limit: ComputeLimit | None = None
    ) -> None:
        self.ask = ask
        self.compute_limit = compute_limit
        self._left = most
        self._counting = threading.Lock()

    def take(self) -> bool:
        """Whether one more gate may be asked."""
        with self._counting:
            if self._left <= 0:
                return False
            self._left -= 1
            return True
