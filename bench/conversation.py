"""How much does the platform add to a conversation? Turns, acknowledgements and first pieces, each beside its baseline.

Promised: a turn at most 6 times the bare consumer; `ack` p95 at 50 conversations at most 1.5 times the bare consumer's
under the same load; the first `delta` within 50 ms of the model's first token.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from bench.report import Row
from bench.stage import Stage, stage
from tests.fakes.openai_server import Reply, direct, serving_in_thread

WARM_UP, TURNS = 20, 200
CONVERSATIONS, ROUNDS = 50, 6
LONG = "A burst pipe is covered, and so is the search for it, up to the sum your schedule names. " * 3


def run() -> list[Row]:
    with stage() as ready:
        rows = [_turn_overhead(ready), _ack_under_load(ready)]
    return [*rows, _first_delta()]


# -- one conversation: a whole turn against one committed insert and its echo ----------------------------------------


def _turn_overhead(ready: Stage) -> Row:
    turn, echo = asyncio.run(_alternating(ready))
    ratio = turn / echo
    return Row("turn, model that answers at once, p50", turn, "ms", "bare consumer p50", echo, ratio, "≤ 6", ratio <= 6)


async def _alternating(ready: Stage) -> tuple[float, float]:
    """Medians in ms; a turn and an echo take turns, so that a noisy second hurts both."""
    async with await _conversation(ready) as talk, connect(f"{ready.socket_url}/ws/bare/") as bare:
        turns, echoes = [], []
        for number in range(WARM_UP + TURNS):
            turns.append(await _timed(_turn(talk, number)))
            echoes.append(await _timed(_echo(bare, number)))
    return statistics.median(turns[WARM_UP:]), statistics.median(echoes[WARM_UP:])


async def _turn(talk: ClientConnection, number: int) -> None:
    await _say(talk, number, "Hello there")
    await _until(talk, lambda frame: frame["type"] == "message" and frame["sender"] == "bot")


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
    talks = await asyncio.gather(*[_conversation(ready) for _ in range(CONVERSATIONS)])
    bares = [await connect(f"{ready.socket_url}/ws/bare/") for _ in range(CONVERSATIONS)]
    acks, echoes = [], []
    for number in range(ROUNDS):
        acks += await asyncio.gather(*[_acknowledged(talk, number) for talk in talks])
        await asyncio.gather(*[_until(talk, _is_answer) for talk in talks])
        echoes += await asyncio.gather(*[_timed(_echo(bare, number)) for bare in bares])
    for line in (*talks, *bares):
        await line.close()
    return _p95(acks[CONVERSATIONS:]), _p95(echoes[CONVERSATIONS:])


async def _acknowledged(talk: ClientConnection, number: int) -> float:
    started = time.perf_counter()
    await _say(talk, number, "Hello there")
    await _until(talk, lambda frame: frame["type"] == "ack")
    return (time.perf_counter() - started) * 1000


# -- the first piece of a streamed answer ----------------------------------------------------------------------------


def _first_delta() -> Row:
    """Worst of thirty turns; the provider is a local server whose tokens come 40 ms apart."""
    reply: Reply = direct(LONG, pieces=12, between=0.04)
    with serving_in_thread([reply]) as provider:
        env = {"OPENAI_BASE_URL": provider.base_url, "OPENAI_API_KEY": "bench"}
        with stage(env, model="openai-chat:gpt-4o-mini") as ready:
            delays = asyncio.run(_delays(ready, provider))
    middle, worst = statistics.median(delays), max(delays)
    name = "first delta after the model's first token, worst of 30"
    return Row(name, worst, "ms", "median", middle, worst / middle, "≤ 50 ms", worst <= 50)


async def _delays(ready: Stage, provider: Any) -> list[float]:
    delays = []
    async with await _conversation(ready) as talk:
        for number in range(30):
            await _say(talk, number, "Hello there")
            await _until(talk, lambda frame: frame["type"] == "delta")
            delays.append((time.perf_counter() - provider.first_token_at[-1]) * 1000)
            await _until(talk, _is_answer)
    return delays


# -- the socket ------------------------------------------------------------------------------------------------------


async def _conversation(ready: Stage) -> ClientConnection:
    token, _ = await asyncio.to_thread(ready.new_session)
    talk = await connect(f"{ready.socket_url}/ws/widget/{ready.deployment.public_key}/")
    await talk.send(json.dumps({"type": "auth", "token": token}))
    await _until(talk, lambda frame: frame["type"] == "ready")
    return talk


async def _say(talk: ClientConnection, number: int, text: str) -> None:
    await talk.send(json.dumps({"type": "message", "text": text, "client_id": f"c{number}"}))


async def _until(talk: ClientConnection, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    while not wanted(frame := json.loads(await asyncio.wait_for(talk.recv(), 30))):
        pass
    return dict(frame)


def _is_answer(frame: dict[str, Any]) -> bool:
    return bool(frame["type"] == "message" and frame["sender"] == "bot")


async def _timed(work: Awaitable[None]) -> float:
    started = time.perf_counter()
    await work
    return (time.perf_counter() - started) * 1000


def _p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]
