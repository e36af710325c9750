"""Measure the overhead of the platform in a conversation: turns and acknowledgements, each beside its baseline.

Promised: a turn at most 6 times the bare consumer; `ack` p95 at 50 conversations at most 1.5 times the bare consumer's
under the same load. The same consumer on our own pool is shown beside it: what is left to gain above our floor.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Awaitable

from websockets.asyncio.client import ClientConnection, connect

from bench.report import Row
from bench.stage import STOCK_PATH, TUNED_PATH, Stage, stage
from bench.visitor import conversation, is_answer, say, until

WARM_UP, TURNS = 20, 200
CONVERSATIONS, ROUNDS = 50, 6


def run() -> list[Row]:
    with stage() as ready:
        return [*_turn_overhead(ready), *_ack_under_load(ready)]


def _rows(name: str, value: float, stock: float, tuned: float, at_most: float) -> list[Row]:
    held = value / stock <= at_most
    return [
        Row(name, value, "ms", "bare consumer", stock, value / stock, f"≤ {at_most:g}", held),
        Row(name, value, "ms", "bare consumer on our pool", tuned, value / tuned),
    ]


# -- one conversation: a whole turn against one committed insert and its echo ----------------------------------------


def _turn_overhead(ready: Stage) -> list[Row]:
    return _rows("turn, model that answers at once, p50", *asyncio.run(_alternating(ready)), 6)


async def _alternating(ready: Stage) -> tuple[float, float, float]:
    """Medians in ms; a turn and the echoes take turns, so that a noisy second hurts all alike."""
    times: tuple[list[float], ...] = ([], [], [])
    async with (
        await conversation(ready) as talk,
        connect(ready.socket_url + STOCK_PATH) as stock,
        connect(ready.socket_url + TUNED_PATH) as tuned,
    ):
        for number in range(WARM_UP + TURNS):
            for spent, work in zip(
                times, (_turn(talk, number), _echo(stock, number), _echo(tuned, number)), strict=True
            ):
                spent.append(await _timed(work))
    turn, echo, on_our_pool = (statistics.median(spent[WARM_UP:]) for spent in times)
    return turn, echo, on_our_pool


async def _turn(talk: ClientConnection, number: int) -> None:
    await say(talk, number, "Hello there")
    await until(talk, lambda frame: frame["type"] == "message" and frame["sender"] == "bot")


async def _echo(bare: ClientConnection, number: int) -> None:
    await bare.send(json.dumps({"type": "message", "text": "Hello there", "client_id": str(number)}))
    await bare.recv()


# -- fifty at once: how long until a message is safe -----------------------------------------------------------------


def _ack_under_load(ready: Stage) -> list[Row]:
    return _rows(f"ack p95, {CONVERSATIONS} conversations", *asyncio.run(_loaded(ready)), 1.5)


async def _loaded(ready: Stage) -> tuple[float, float, float]:
    """p95 in ms of acknowledgements while all conversations' turns run, and of echoes under as much load."""
    talks = await asyncio.gather(*[conversation(ready) for _ in range(CONVERSATIONS)])
    stock, tuned = [
        [await connect(ready.socket_url + path) for _ in range(CONVERSATIONS)] for path in (STOCK_PATH, TUNED_PATH)
    ]
    times: tuple[list[float], ...] = ([], [], [])
    for number in range(ROUNDS):
        times[0].extend(await asyncio.gather(*[_acknowledged(talk, number) for talk in talks]))
        await asyncio.gather(*[until(talk, is_answer) for talk in talks])
        for spent, lines in zip(times[1:], (stock, tuned), strict=True):
            spent.extend(await asyncio.gather(*[_timed(_echo(line, number)) for line in lines]))
    for line in (*talks, *stock, *tuned):
        await line.close()
    ack, echo, on_our_pool = (_p95(spent[CONVERSATIONS:]) for spent in times)
    return ack, echo, on_our_pool


async def _acknowledged(talk: ClientConnection, number: int) -> float:
    started = time.perf_counter()
    await say(talk, number, "Hello there")
    await until(talk, lambda frame: frame["type"] == "ack")
    return (time.perf_counter() - started) * 1000


async def _timed(work: Awaitable[None]) -> float:
    started = time.perf_counter()
    await work
    return (time.perf_counter() - started) * 1000


def _p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]
