"""Measure whether the web process grows: its memory after 5,000 turns and after `BENCH_TURNS` (20,000).

The mix of `bench.load`, as fast as it is answered; visitors come and go. Promised: at most a tenth more after 100,000
turns. Memory is the proportional set size.
"""

from __future__ import annotations

import asyncio
import os

import psutil

from bench.load import Line, questions_of, turn_of
from bench.report import Row
from bench.stage import Stage, stage
from bench.visitor import conversation

TURNS = int(os.environ.get("BENCH_TURNS", "20000"))
FIRST = min(5_000, TURNS // 4)
VISITORS, SAYS, MOST = 8, 25, 1.1


def run() -> list[Row]:
    with stage() as ready:
        return asyncio.run(_measured(ready, questions_of(ready)))


async def _measured(ready: Stage, questions: list[str]) -> list[Row]:
    await _turns(ready, questions, FIRST)
    before = _megabytes(ready)
    await _turns(ready, questions, TURNS - FIRST)
    after = _megabytes(ready)
    name = f"memory of the web process after {TURNS:,} turns"
    ratio = after / before
    return [Row(name, after, "MB", f"after {FIRST:,}", before, ratio, f"≤ {MOST:g}", ratio <= MOST)]


async def _turns(ready: Stage, questions: list[str], turns: int) -> None:
    waiting = iter(range(0, turns, SAYS))
    turn = turn_of(questions)

    async def visitors() -> None:
        for first in waiting:
            line = Line(await conversation(ready))
            for number in range(first, min(first + SAYS, turns)):
                await turn(line, number)
            await line.socket.close()

    await asyncio.gather(*(visitors() for _ in range(VISITORS)))


def _megabytes(ready: Stage) -> float:
    assert ready.process is not None
    return float(psutil.Process(ready.process.pid).memory_full_info().pss) / 1_000_000
