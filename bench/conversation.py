"""How much does the platform add to a conversation? Turns and acknowledgements, each beside its baseline.

Promised: a turn at most 6 times the bare consumer; `ack` p95 at 50 conversations at most 1.5 times the bare consumer's
under the same load.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Awaitable

from websockets.asyncio.client import ClientConnection, connect

from bench.report import Row
from bench.stage import Stage, stage
from bench.visitor import conversation, is_answer, say, until

WARM_UP, TURNS = 20, 200
CONVERSATIONS, ROUNDS = 50, 6


def run() -> list[Row]:
    with stage() as ready:
        return [_turn_overhead(ready), _ack_under_load(ready)]


# -- one conversation: a whole turn against one committed insert and its echo ----------------------------------------


def _turn_overhead(ready: Stage) -> Row:
    turn, echo = asyncio.run(_alternating(ready))
    ratio = turn / echo
    return Row("turn, model that answers at once, p50", turn, "ms", "bare consumer p50", echo, ratio, "≤ 6", ratio <= 6)


async def _alternating(ready: Stage) -> tuple[float, float]:
    """Medians in ms; a turn and an echo take turns, so that a noisy second hurts both."""
    async with await conversation(ready) as talk, connect(f"{ready.socket_url}/ws/bare/") as bare:
        turns, echoes = [], []
        for number in range(WARM_UP + TURNS):
            turns.append(await _timed(_turn(talk, number)))
            echoes.append(await _timed(_echo(bare, number)))
    return statistics.median(turns[WARM_UP:]), statistics.median(echoes[WARM_UP:])


async def _turn(talk: ClientConnection, number: int) -> None:
    await say(talk, number, "Hello there")
    await until(talk, lambda frame: frame["type"] == "message" and frame["sender"] == "bot")


async def _echo(bare: ClientConnection, number: int) -> None:
    await bare.send(json.dumps({"type": "message", "text": "Hello there", "client_id": str(number)}))
    await bare.recv()


# -- fifty at once: how long until a message is safe -----------------------------------------------------------------


def _ack_under_load(ready: Stage) -> Row:
    ack, echo = asyncio.run(_loaded(ready))
    ratio = ack / echo
    return Row(
        f"ack p95, {CONVERSATIONS} conversations", ack, "ms", "bare consumer p95", echo, ratio, "≤ 1.5", ratio <= 1.5
    )


async def _loaded(ready: Stage) -> tuple[float, float]:
    """p95 in ms of acknowledgements while all conversations' turns run, and of echoes under as much load."""
    talks = await asyncio.gather(*[conversation(ready) for _ in range(CONVERSATIONS)])
    bares = [await connect(f"{ready.socket_url}/ws/bare/") for _ in range(CONVERSATIONS)]
    acks, echoes = [], []
    for number in range(ROUNDS):
        acks += await asyncio.gather(*[_acknowledged(talk, number) for talk in talks])
        await asyncio.gather(*[until(talk, is_answer) for talk in talks])
        echoes += await asyncio.gather(*[_timed(_echo(bare, number)) for bare in bares])
    for line in (*talks, *bares):
        await line.close()
    return _p95(acks[CONVERSATIONS:]), _p95(echoes[CONVERSATIONS:])


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
