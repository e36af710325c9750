"""Whose turn is it? A worker goes round the tenants that are owed something and serves each for a short turn; within
a tenant it goes round the scopes.

So nobody's ten thousand messages stand in front of somebody else's one: within a round every tenant that waits is
served, and every scope of a tenant. Where a process stands in the round is its own and is lost with it, which harms
nobody. Called by `tasks.drain` alone, in a worker.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from uuid import UUID

from apps.bus import deadlines, queries, wakeup
from apps.bus.deliveries import deliver, take
from apps.bus.enums import Queue
from apps.bus.registry import consumed_queues
from apps.bus.schemas import Lease
from kernel.tenancy import tenant_scope

LEASE_SECONDS = 120.0
# A tenant's turn ends with whichever comes first; a shift makes room for the worker's other tasks.
TURN_MESSAGES, TURN_SECONDS = 16, 0.5
SHIFT_SECONDS = 10.0

Line = tuple[Queue, UUID]
# Where this process stands in the round of lines, and in each line's round of scopes.
_served_last: Line | None = None
_scope_served_last: dict[Line, str] = {}


def drain(*, consumer: str, first: Line | None = None, lease_seconds: float = LEASE_SECONDS) -> None:
    """Carry out what is owed until nothing may be delivered any more or the shift ends; then somebody is woken for the
    rest. `consumer` names this process in the leases it takes; a turn of the line `first`, which the poke named, goes
    before the round, so that nobody waits while a worker looks around."""
    try:
        with asyncio.Runner() as runner:
            _drain(Shift(consumer, lease_seconds, runner), first)
            deadlines.within(deadlines.LEAVING_SECONDS)
    finally:
        deadlines.clear()


def _drain(shift: Shift, first: Line | None) -> None:
    if first is not None and first[0] in consumed_queues():
        shift.round([first])
    while lines := queries.waiting_lines(consumed_queues()):
        if not shift.round(lines):
            return
        if shift.is_over():
            wakeup.poke()
            return


class Shift:
    """What one wake-up makes a worker do. Only handlers run in an event loop, which is made for the first of them."""

    def __init__(self, consumer: str, lease_seconds: float, runner: asyncio.Runner) -> None:
        self._consumer, self._seconds, self._runner = consumer, lease_seconds, runner
        self._ends = time.monotonic() + SHIFT_SECONDS
        self._delivered = 0

    def is_over(self) -> bool:
        return time.monotonic() >= self._ends

    def round(self, lines: Sequence[Line]) -> bool:
        """Serve every line once, beginning after the one that was served last; False when nothing could be taken."""
        global _served_last
        before = self._delivered
        for line in _going_on_after(_served_last, lines):
            _served_last = line
            self._turn(line)
            if self.is_over():
                break
        return self._delivered > before

    def _turn(self, line: Line) -> None:
        ends = time.monotonic() + TURN_SECONDS
        for _ in range(TURN_MESSAGES):
            lease = self._take(line)
            if lease is None:
                return
            self._count()
            deadlines.within()
            self._runner.run(deliver(line[1], lease, seconds=self._seconds))
            if time.monotonic() >= ends:
                return

    def _take(self, line: Line) -> Lease | None:
        queue, tenant_id = line
        after = _scope_served_last.get(line, "")
        with tenant_scope(tenant_id):
            lease = take(queue, consumer=self._consumer, after=after, seconds=self._seconds)
        if lease is not None:
            _scope_served_last[line] = lease.message.scope_id
        return lease

    def _count(self) -> None:
        """Where there is a second message there may be a third: another worker may have time for it."""
        self._delivered += 1
        if self._delivered == 2:
            wakeup.poke()


def _going_on_after(last: Line | None, lines: Sequence[Line]) -> list[Line]:
    ordered = sorted(lines)
    later = [line for line in ordered if last is not None and line > last]
    return [*later, *(line for line in ordered if line not in later)]
