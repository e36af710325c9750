"""Measure several web processes behind HAProxy (deploy/haproxy.cfg) on one machine.

Two beside one: turns a second and the time of a turn, in rounds that alternate; the second process is stopped (SIGSTOP)
while one is measured. One of three killed with -9 under load: how soon the others carry two thirds of the load, and
whether every widget comes back and everything said is kept and answered once. With two cores for clients, database and
web processes alike, no capacity is promised for a second process.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from bench.report import Row
from bench.stage import Stage, deployment, servers, start_web
from bench.visitor import conversation, is_answer, say, until
from tests import prepared
from tests.faults.house import Web
from tests.faults.visitor import Visitor
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[1]
CONVERSATIONS, TURNS, WARM_UP, ROUNDS = 16, 5, 1, 6
VISITORS, BEFORE_SECONDS, AFTER_SECONDS, WINDOW_SECONDS = 24, 20.0, 30.0, 3.0
SHARE, BACK_SECONDS, REST_SECONDS = 2 / 3, 10.0, 180.0
_SETTINGS = {"SILAS_TRUSTED_PROXIES": "1", "SILAS_ADDRESS_MESSAGES_A_MINUTE": "1000000"}
_SERVER = "    server web-"


def run() -> list[Row]:
    with servers(_SETTINGS, lay=prepared.lay) as env, contextlib.ExitStack() as stack:
        webs = [start_web(env, stack) for _ in range(3)]
        place = deployment("builtin:grounded")
        urls = [url for url, _ in webs]
        first, second, third = (process for _, process in webs)
        with _stopped(third):
            one, two = (Stage(stack.enter_context(_proxy(urls[:count])), env, place) for count in (1, 2))
            rows = asyncio.run(_two_beside_one(one, two, second))
        rows.append(_kept_once(env["SILAS_TEST_SUPERUSER_DSN"], "two web processes"))
        port = int(stack.enter_context(_proxy(urls)).rsplit(":", 1)[1])
        proxy = Web(first, Path(), Path(), port=port)
        rows += asyncio.run(_one_of_three_killed(proxy, place.public_key, second))
        rows.append(_kept_once(env["SILAS_TEST_SUPERUSER_DSN"], "one of three killed"))
    return rows


# -- two beside one --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Round:
    """Turns a second, and the 95th percentile of a turn in ms."""

    rate: float
    p95: float


async def _two_beside_one(one: Stage, two: Stage, second: subprocess.Popen[bytes]) -> list[Row]:
    rounds = []
    for number in range(WARM_UP + ROUNDS):
        found = {}
        for name in ("one", "two") if number % 2 else ("two", "one"):
            with _stopped(second) if name == "one" else contextlib.nullcontext():
                found[name] = await _round(one if name == "one" else two)
        rounds.append((found["two"], found["one"]))
    rate, rate_of_one, rate_ratio = _medians([(both.rate, alone.rate) for both, alone in rounds[WARM_UP:]])
    p95, p95_of_one, p95_ratio = _medians([(both.p95, alone.p95) for both, alone in rounds[WARM_UP:]])
    name, beside = f"two web processes behind HAProxy, {CONVERSATIONS} at once", "one web process behind HAProxy"
    return [
        Row(f"{name}: turns a second", rate, "/s", beside, rate_of_one, rate_ratio),
        Row(f"{name}: a turn, p95", p95, "ms", beside, p95_of_one, p95_ratio, "≤ 1", p95_ratio <= 1),
    ]


async def _round(ready: Stage) -> _Round:
    talks = [await conversation(ready) for _ in range(CONVERSATIONS)]
    begun, times = time.perf_counter(), []

    async def talk_on(talk: Any) -> None:
        for turn in range(TURNS):
            started = time.perf_counter()
            await say(talk, turn, "Hello there")
            await until(talk, is_answer)
            times.append((time.perf_counter() - started) * 1000)

    await asyncio.gather(*[talk_on(talk) for talk in talks])
    spent = time.perf_counter() - begun
    for talk in talks:
        await talk.close()
    return _Round(len(times) / spent, statistics.quantiles(times, n=20)[-1])


def _medians(pairs: list[tuple[float, float]]) -> tuple[float, float, float]:
    """Of both, and of their ratio in each round."""
    new, old = (statistics.median(values) for values in zip(*pairs, strict=True))
    return new, old, statistics.median(value / beside for value, beside in pairs)


# -- one of three killed ---------------------------------------------------------------------------------------------


async def _one_of_three_killed(proxy: Web, key: str, victim: subprocess.Popen[bytes]) -> list[Row]:
    visitors = [Visitor(lambda: proxy, key=key) for _ in range(VISITORS)]
    answered: list[float] = []
    over = asyncio.Event()

    async def talk_on(visitor: Visitor) -> None:
        while not over.is_set():
            await visitor.ask("Hello there", seconds=REST_SECONDS)
            answered.append(time.monotonic())

    async with contextlib.AsyncExitStack() as stack:
        for visitor in visitors:
            await stack.enter_async_context(visitor)
        talks = [asyncio.create_task(talk_on(visitor)) for visitor in visitors]
        await asyncio.sleep(BEFORE_SECONDS)
        lines = [visitor.lines for visitor in visitors]
        killed = time.monotonic()
        victim.kill()
        before = sum(killed - BEFORE_SECONDS / 2 <= at for at in answered) / (BEFORE_SECONDS / 2)
        await asyncio.sleep(AFTER_SECONDS)
        over.set()
        await asyncio.gather(*talks)
        for visitor in visitors:
            await visitor.hears_all(seconds=REST_SECONDS)
    back = _back_after(killed, answered, SHARE * before)
    came_back = sum(visitor.lines > had for visitor, had in zip(visitors, lines, strict=True))
    after = sum(killed + BACK_SECONDS <= at < killed + AFTER_SECONDS for at in answered) / (
        AFTER_SECONDS - BACK_SECONDS
    )
    lost = sum(len(visitor.unacknowledged) for visitor in visitors)
    lost += sum(abs(len(visitor.answers()) - len(visitor.acknowledged)) for visitor in visitors)
    name = "one of three web processes killed"
    return [
        Row(f"{name}: two thirds of the capacity after", back, "s", "", 0, 0, f"≤ {BACK_SECONDS:.0f} s", back <= 10),
        Row(f"{name}: turns a second from then on", after, "/s", "before", before, after / before),
        Row(
            *(f"{name}: widgets that lost their socket and came back", came_back, "", "widgets", VISITORS),
            *(came_back / VISITORS, "all are answered", lost == 0),
        ),
    ]


def _back_after(killed: float, answered: list[float], wanted: float) -> float:
    """Seconds from the kill until a window of answers reaches the wanted rate; infinite where none does."""
    for tenths in range(int((AFTER_SECONDS - WINDOW_SECONDS) * 10)):
        begins = killed + tenths / 10
        if sum(begins <= at < begins + WINDOW_SECONDS for at in answered) / WINDOW_SECONDS >= wanted:
            return tenths / 10 + WINDOW_SECONDS
    return float("inf")


# -- what both need --------------------------------------------------------------------------------------------------


def _kept_once(superuser: str, name: str) -> Row:
    """Messages of visitors that were kept twice, or answered not once."""
    with psycopg.connect(superuser) as connection:
        said, wrong = connection.execute(
            "SELECT count(*), count(*) FILTER (WHERE copies <> 1 OR done <> 1) FROM ("
            "  SELECT entry.session_id, entry.client_id, count(DISTINCT entry.id) AS copies,"
            "    count(DISTINCT turn.id) AS done"
            "  FROM silas_sessions_chronicleentry entry LEFT JOIN silas_sessions_turn turn"
            "    ON turn.session_id = entry.session_id AND turn.message_seq = entry.seq AND turn.status = 'done'"
            "  WHERE entry.sender = 'visitor' GROUP BY entry.session_id, entry.client_id) AS messages"
        ).fetchone() or (0, 0)
    return Row(f"{name}: messages lost, doubled or not answered once", wrong, "", "messages", said, 0, "0", wrong == 0)


@contextlib.contextmanager
def _stopped(process: subprocess.Popen[bytes]) -> Iterator[None]:
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


@contextlib.contextmanager
def _proxy(urls: list[str]) -> Iterator[str]:
    """HAProxy with the configuration that ships, and a `server` line for each of these; its URL."""
    lines = (ROOT / "deploy/haproxy.cfg").read_text().splitlines()
    named = [f'{_SERVER}{number} "${{SILAS_WEB_{number}}}"' for number in range(1, len(urls) + 1)]
    port = free_port()
    env = {
        **os.environ,
        "SILAS_BIND": f"127.0.0.1:{port}",
        "SILAS_HOST": "127.0.0.1",
        **{f"SILAS_WEB_{number}": url.removeprefix("http://") for number, url in enumerate(urls, 1)},
    }
    with tempfile.NamedTemporaryFile("w", suffix=".cfg") as file:
        file.write("\n".join([line for line in lines if not line.startswith(_SERVER)] + named) + "\n")
        file.flush()
        process = subprocess.Popen(["/usr/sbin/haproxy", "-db", "-f", file.name], env=env, stdout=subprocess.DEVNULL)
        try:
            proxy = Web(process, Path(), Path(), port=port)
            give_up = time.monotonic() + 30
            while not proxy.is_ready():
                if time.monotonic() > give_up:
                    raise RuntimeError("HAProxy found no web process that is ready")
                time.sleep(0.2)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()
