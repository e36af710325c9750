"""Count, not time, the round trips to the database of a turn, by step.

A round trip is a time that the process waits for the server's answer: statements that leave together are one. The bound
is on those that read or commit; here all are held against it.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any
from unittest.mock import patch

import psycopg
from psycopg.waiting import Ready

from bench.report import Row
from bench.stage import Stage, stage

_step: ContextVar[str] = ContextVar("bench_step", default="")
BOUND = 25


def run() -> list[Row]:
    with stage() as ready:
        counts = _counted(ready)
    rows = [_row(f"round trips in {step}", trips) for step, trips in counts.items()]
    return [*rows, _row("round trips of a turn", sum(counts.values()), bound=f"≤ {BOUND}")]


def _row(name: str, trips: int, bound: str = "") -> Row:
    return Row(
        name, trips, "", "allowed in a whole turn", BOUND, trips / BOUND, bound, trips <= BOUND if bound else None
    )


def _counted(ready: Stage) -> Counter[str]:
    counts: Counter[str] = Counter()
    with _watching(counts):
        asyncio.run(_one_turn(ready, warm=True))
        counts.clear()
        asyncio.run(_one_turn(ready, warm=False))
    return counts


async def _one_turn(ready: Stage, *, warm: bool) -> None:
    """Accept a message and answer it, here, with every step under its name."""
    from uuid import UUID

    from apps.sessions import runner, services
    from kernel.tenancy import in_scope

    _, session = await asyncio.to_thread(ready.new_session)
    tenant = ready.deployment.tenant_id
    rounds = 2  # the second turn of a conversation is the usual one: its guarded run exists
    for number in range(rounds):
        _step.set("accept" if number else "first turn")
        await in_scope(tenant, services.accept_message, UUID(session), text="Hello there", client_id=str(number))
        await runner._one_turn(tenant, UUID(session))


@contextmanager
def _watching(counts: Counter[str]) -> Iterator[None]:
    """Count, under the step that runs, every time a connection of this process waits for its server to speak."""
    real = psycopg.Connection.wait

    def wait(self: Any, gen: Any, *args: Any, **kwargs: Any) -> Any:
        waited: list[Any] = []
        answer = real(self, heard(gen, waited), *args, **kwargs)
        if waited and _step.get() not in ("", "first turn"):
            counts[_step.get()] += 1
        return answer

    with ExitStack() as stack:
        stack.enter_context(patch.object(psycopg.Connection, "wait", wait))
        _name_steps(stack)
        yield


def heard(gen: Any, waited: list[Any]) -> Any:
    """`gen`, the driver's way to say what it waits for; notes each wait that ended because the server had spoken. In a
    pipeline the driver waits for what it may read and for what it may send at once, so its wish does not tell."""
    ready = 0
    while True:
        try:
            ready = yield gen.send(ready or None)
        except StopIteration as end:
            return end.value
        waited += [ready] if ready & Ready.R else []


def _name_steps(stack: ExitStack) -> None:
    """Let every step of the turn say its name while it runs."""
    from apps.sessions import turn

    def slow(step: Any) -> Any:
        async def run(state: Any) -> Any:
            _step.set(f"{step.number} {step.name}" if _counting() else "first turn")
            return await step.run(state)

        return dataclasses.replace(step, run=run)

    def closing(step: Any) -> Any:
        def run(state: Any) -> Any:
            _step.set(f"{step.number} {step.name}" if _counting() else "first turn")
            return step.run(state)

        return dataclasses.replace(step, run=run)

    opened = turn.open_turn

    def open_turn(*args: Any, **kwargs: Any) -> Any:
        _step.set("0 opening" if _counting() else "first turn")
        return opened(*args, **kwargs)

    stack.enter_context(patch.object(turn, "BETWEEN", tuple(slow(step) for step in turn.BETWEEN)))
    stack.enter_context(patch.object(turn, "CLOSING", tuple(closing(step) for step in turn.CLOSING)))
    stack.enter_context(patch.object(turn, "open_turn", open_turn))


def _counting() -> bool:
    return _step.get() != "first turn"
