"""Measure one web process under load: processor time of a turn, and how many turns a second it carries.

Half of what visitors write is small talk, half are questions to the documents of their company (1,000 chunks). Messages
are sent by a clock, however long answers take; a time counts from when the message was due to its recorded answer.
Promised: at most 11 ms of the web process's processor time a turn and 7 ms of PostgreSQL's at 35 messages a second; 90
turns a second with a p95 of at most 250 ms, and at least an eighth of what the bare consumer carries at the same bound.
The client runs on the same machine. `BENCH_RATE` changes the 35.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from websockets.asyncio.client import ClientConnection, connect

from bench import corpus
from bench.report import Row
from bench.stage import STOCK_PATH, Stage, stage
from bench.visitor import conversation, is_answer, say, until

CHUNKS = 1_000
SMALL_TALK = ("Hello there", "Thank you!", "Good morning", "How are you?", "Thanks, that helps", "Goodbye")
LINES, WARM_UP_SECONDS, SECONDS = 40, 5.0, 20.0
RATE = float(os.environ.get("BENCH_RATE", "35"))
MOST_WEB_MS, MOST_DATABASE_MS = 11.0, 7.0
WITHIN_MS, STEP, STEP_SECONDS = 250.0, 1.25, 8.0
FIRST_RATE, FIRST_BARE_RATE = 8.0, 50.0
LEAST_RATE, LEAST_SHARE = 90.0, 1 / 8


@dataclass
class Line:
    """A visitor's socket, which waits for one answer at a time."""

    socket: ClientConnection
    free: asyncio.Lock = field(default_factory=asyncio.Lock)


Send = Callable[[Line, int], Awaitable[None]]


def run() -> list[Row]:
    with stage() as ready:
        return asyncio.run(_measured(ready, questions_of(ready)))


def questions_of(ready: Stage) -> list[str]:
    """Give the stage's company documents; returns questions to them."""
    from apps.knowledge import services

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "handbooks.jsonl"
        questions = corpus.write(path, sections=CHUNKS)
        services.ingest(ready.deployment.tenant_id, collection="handbooks", paths=[path], root=Path(folder))
    return [question for question, _ in questions]


def turn_of(questions: list[str]) -> Send:
    """Say the next of the mix and wait for its recorded answer."""
    said = itertools.count()  # a message with the number of an earlier one is not answered again

    async def turn(line: Line, number: int) -> None:
        half = number // 2
        text = questions[half * 7919 % len(questions)] if number % 2 else SMALL_TALK[half % len(SMALL_TALK)]
        await say(line.socket, next(said), text)
        await until(line.socket, is_answer)

    return turn


async def _measured(ready: Stage, questions: list[str]) -> list[Row]:
    first = Line(await conversation(ready))
    turn = turn_of(questions)
    for number in range(4):  # the process loads what it searches with
        await turn(first, number)
    await _close([first])
    return [*await _processor_time(ready, turn), *await _capacity(ready, turn)]


async def _processor_time(ready: Stage, turn: Send) -> list[Row]:
    lines = [Line(await conversation(ready)) for _ in range(LINES)]
    await _offered(lines, turn, FIRST_RATE, WARM_UP_SECONDS)
    before = _web_seconds(ready), _database_seconds(ready)
    turns = len(await _offered(lines, turn, RATE, SECONDS))
    after = _web_seconds(ready), _database_seconds(ready)
    await _close(lines)
    web, database = ((end - begin) * 1000 / turns for begin, end in zip(before, after, strict=True))
    name, most = f"processor time of a turn at {RATE:g} messages a second", MOST_DATABASE_MS
    return [
        Row(f"{name}, web process", web, "ms", "", 0, 0, f"≤ {MOST_WEB_MS:g} ms", web <= MOST_WEB_MS),
        Row(f"{name}, PostgreSQL", database, "ms", "", 0, 0, f"≤ {most:g} ms", database <= most),
    ]


async def _capacity(ready: Stage, turn: Send) -> list[Row]:
    async def talk() -> Line:
        return Line(await conversation(ready))

    async def bare() -> Line:
        return Line(await connect(ready.socket_url + STOCK_PATH))

    async def echo(line: Line, number: int) -> None:
        await line.socket.send(f'{{"type": "message", "text": "Hello there", "client_id": "{number}"}}')
        await line.socket.recv()

    ours, base = await _highest(talk, turn, FIRST_RATE), await _highest(bare, echo, FIRST_BARE_RATE)
    share = ours / base if base else 0.0
    held = ours >= LEAST_RATE and share >= LEAST_SHARE
    name = f"turns a second with p95 ≤ {WITHIN_MS:g} ms, one web process"
    bound = f"≥ {LEAST_RATE:g} /s and ≥ {LEAST_SHARE:.3f}"
    return [Row(name, ours, "/s", "bare consumer at the same bound", base, share, bound, held)]


async def _highest(open_line: Callable[[], Awaitable[Line]], send: Send, rate: float) -> float:
    """The highest rate of the ladder that keeps the bound, each in at most two tries; 0 when the first does not."""
    lines, kept = [await open_line() for _ in range(LINES)], 0.0
    await _offered(lines, send, rate, WARM_UP_SECONDS)
    while await _keeps(lines, send, rate) or await _keeps(lines, send, rate):
        kept, rate = rate, rate * STEP
    await _close(lines)
    return kept


async def _keeps(lines: list[Line], send: Send, rate: float) -> bool:
    return statistics.quantiles(await _offered(lines, send, rate, STEP_SECONDS), n=20)[-1] <= WITHIN_MS


async def _offered(lines: list[Line], send: Send, rate: float, seconds: float) -> list[float]:
    """Milliseconds of each message, from when it was due to its answer."""
    begun = time.perf_counter()

    async def one(number: int) -> float:
        due = begun + number / rate
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        line = lines[number % len(lines)]
        async with line.free:
            await send(line, number)
        return (time.perf_counter() - due) * 1000

    return list(await asyncio.gather(*(one(number) for number in range(int(rate * seconds)))))


def _web_seconds(ready: Stage) -> float:
    """Processor time of the web process so far."""
    assert ready.process is not None
    return sum(psutil.Process(ready.process.pid).cpu_times()[:2])


def _database_seconds(ready: Stage) -> float:
    """Processor time of PostgreSQL so far, with its processes that have ended."""
    found = 0.0
    for process in psutil.process_iter(["name"]):
        try:
            if process.info["name"] == "postgres" and process.cwd().startswith(ready.env["SILAS_VAR"]):
                found += sum(process.cpu_times()[:4])
        except psutil.Error:
            continue
    return found


async def _close(lines: list[Line]) -> None:
    await asyncio.gather(*(line.socket.close() for line in lines))
