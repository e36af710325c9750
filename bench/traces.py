"""Measure what traces cost: turns a second with all of them recorded and sent, beside a web process that records none.

Two web processes on the same servers take turns; the one that is not measured is stopped meanwhile (SIGSTOP), because
it would answer messages that wait at the other. Neither sends metrics. The collector is a receiver in this process: at
the end every turn must have arrived. Promised: at most 5 % fewer turns a second. The processor time of the web process
is shown beside it: it is less noisy on a machine that has other work.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass

import psutil
from websockets.asyncio.client import ClientConnection

from bench.report import Row
from bench.stage import Stage, stage, start_web
from bench.visitor import conversation, is_answer, say, until
from tests.fakes.otlp_receiver import receiving

CONVERSATIONS, TURNS, WARM_UP, ROUNDS = 8, 5, 3, 24
AT_LEAST = 0.95
ARRIVES_SECONDS = 30


def run() -> list[Row]:
    with receiving() as receiver, stage() as plain, contextlib.ExitStack() as stack:
        env = {**plain.env, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{receiver.url}/v1/traces"}
        url, process = start_web(env, stack)
        traced = Stage(url, env, plain.deployment, process)
        rounds = asyncio.run(_measured(plain, traced))
        turns, give_up = (WARM_UP + ROUNDS) * CONVERSATIONS * TURNS, time.monotonic() + ARRIVES_SECONDS
        while (found := _turns(receiver.spans())) < turns and time.monotonic() < give_up:
            time.sleep(1)
        if found != turns:
            raise RuntimeError(f"{found} of {turns} turns arrived at the collector")
        spans = len(receiver.spans()) / turns
        on, off, ratio = _medians([(with_traces.rate, without.rate) for with_traces, without in rounds])
        on_cpu, off_cpu, cpu_ratio = _medians([(with_traces.cpu, without.cpu) for with_traces, without in rounds])
        name = f"turns a second, all traced and sent, {spans:.0f} spans each"
        return [
            Row(name, on, "/s", "without traces", off, ratio, f"≥ {AT_LEAST:g}", ratio >= AT_LEAST),
            Row("processor time of the web process, a turn", on_cpu, "ms", "without traces", off_cpu, cpu_ratio),
        ]


@dataclass(frozen=True)
class _Round:
    """Turns a second, and the web process's milliseconds of processor time a turn."""

    rate: float
    cpu: float


def _medians(pairs: list[tuple[float, float]]) -> tuple[float, float, float]:
    """Of both, and of their ratio in each round."""
    on, off = (statistics.median(values) for values in zip(*pairs, strict=True))
    return on, off, statistics.median(with_traces / without for with_traces, without in pairs)


def _turns(spans: list[tuple[dict[str, str], object]]) -> int:
    return sum(span.name == "turn" for _, span in spans)  # type: ignore[attr-defined]


async def _measured(plain: Stage, traced: Stage) -> list[tuple[_Round, _Round]]:
    """The rounds with traces and without; which one begins alternates."""
    talks = {id(ready): [await conversation(ready) for _ in range(CONVERSATIONS)] for ready in (plain, traced)}
    rounds = []
    for number in range(WARM_UP + ROUNDS):
        order, found = ((traced, plain) if number % 2 else (plain, traced)), {}
        for ready in order:
            other = plain if ready is traced else traced
            with _stopped(other):
                found[id(ready)] = await _round(ready, talks[id(ready)], number)
        rounds.append((found[id(traced)], found[id(plain)]))
    for talk in (*talks[id(plain)], *talks[id(traced)]):
        await talk.close()
    return rounds[WARM_UP:]


@contextlib.contextmanager
def _stopped(ready: Stage) -> Iterator[None]:
    assert ready.process is not None
    ready.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        ready.process.send_signal(signal.SIGCONT)


async def _round(ready: Stage, talks: list[ClientConnection], number: int) -> _Round:
    begun, spent = time.perf_counter(), _cpu_seconds(ready)
    await asyncio.gather(*[_turns_of(talk, number) for talk in talks])
    turns = len(talks) * TURNS
    return _Round(turns / (time.perf_counter() - begun), (_cpu_seconds(ready) - spent) * 1000 / turns)


def _cpu_seconds(ready: Stage) -> float:
    assert ready.process is not None
    times = psutil.Process(ready.process.pid).cpu_times()
    return times.user + times.system


async def _turns_of(talk: ClientConnection, number: int) -> None:
    for turn in range(TURNS):
        await say(talk, number * TURNS + turn, "Hello there")
        await until(talk, is_answer)
