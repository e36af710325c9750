"""Measure an attempt's budget before each of its actions (contract silas 5.1: `>=` is used up).

Attempts are counted when they begin, and the planner's help is paid from the plan's own budget; neither can run out
during an attempt.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from apps.work.budgets import Budget, BudgetUsed

T = TypeVar("T")
NOT_DURING_AN_ATTEMPT = frozenset({"attempts", "planner_calls"})


class BudgetExhausted(Exception):
    """The attempt stops because the budget is used up; `counter` names which limit was reached."""

    def __init__(self, counter: str) -> None:
        super().__init__(counter)
        self.counter = counter


@dataclass
class Meter:
    """Clock and counters of one attempt. `used`: what the item had used before. The guard keeps the run's tokens and
    cost, which are charged when a model run ends."""

    budget: Budget
    used: BudgetUsed
    clock: Callable[[], float] = time.monotonic
    started: float = field(init=False)
    busy: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self.started = self.clock()

    @property
    def seconds(self) -> float:
        return round(self.clock() - self.started, 3)

    @property
    def seconds_left(self) -> float:
        return max(0.0, self.budget.max_wall_time_seconds - self.used.wall_time_seconds - self.seconds)

    @property
    def tokens_left(self) -> int:
        return max(0, self.budget.max_tokens - self.used.tokens)

    async def in_time(self, work: Awaitable[T]) -> T:
        """Return the result of `work`; raise `BudgetExhausted` when the time is up. A call in progress is never cut
        off: the caller holds `busy` meanwhile."""
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait({task}, timeout=self.seconds_left)
            # Taking the lock waits for a call in progress to finish before the task is cancelled.
            async with self.busy:
                if not task.done():
                    raise BudgetExhausted("wall_time_seconds")
            return task.result()
        finally:
            if task.cancel():
                await asyncio.wait({task})

    def require(self) -> None:
        """Raise `BudgetExhausted` if a limit has been reached."""
        now_used = self.used.merge(BudgetUsed(wall_time_seconds=self.seconds))
        counter = now_used.exhausted(self.budget, ignoring=NOT_DURING_AN_ATTEMPT)
        if counter:
            raise BudgetExhausted(counter)
