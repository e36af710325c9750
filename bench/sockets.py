"""Measure what idle widgets cost one web process: memory, processor time, statements, and whether they still hear.

5,000 visitors with sessions of their own open the widget's socket as a browser does (Origin, languages, an offer to
compress) and say nothing. Memory is the proportional set size of the web process, after some visitors have come and
gone, beside that with all of them there. Statements are counted in the log of PostgreSQL, during an idle minute with
all and one with none. At the end some are sent a message by another process.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import re
import resource
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import psutil
import psycopg
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from bench.report import Row
from bench.stage import Stage, deployment, servers, start_web
from bench.visitor import until
from tests import prepared

SOCKETS = int(os.environ.get("BENCH_SOCKETS", "5000"))
WARM_UP, AT_ONCE, TOLD = 200, 10, 50
TRY_LATER, RETRY_SECONDS, TRIES = 1013, 1.0, 60
CALM_SECONDS, IDLE_SECONDS = 20.0, 60.0
MOST_KB, MOST_PERCENT, MOST_MS = 45.0, 25.0, 1000.0
_BROWSER = {
    "Accept-Language": "en-GB,en;q=0.9,de;q=0.8",
    "Cache-Control": "no-cache",
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36",
}
_STATEMENT = re.compile(rb"LOG:  (?:statement|execute [^:]*): ")


def run() -> list[Row]:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with servers(lay=prepared.lay) as env, contextlib.ExitStack() as stack:
        url, process = start_web(env, stack)
        try:
            return asyncio.run(_measured(Stage(url, env, deployment("builtin:grounded"), process)))
        except ConnectionClosed:
            print((Path(env["SILAS_VAR"]) / "web.log").read_text(errors="replace")[-4000:], file=sys.stderr)
            raise


async def _measured(ready: Stage) -> list[Row]:
    await _close(await _open(ready, WARM_UP))
    _log_statements(ready)
    alone = await _idle(ready)
    begun = time.perf_counter()
    visitors = await _open(ready, SOCKETS)
    opened = time.perf_counter() - begun
    there = await _idle(ready)
    spread = [visitors[at * len(visitors) // TOLD] for at in range(TOLD)]
    delays = sorted([await _delivery_ms(ready, *visitor) for visitor in spread])
    median, p95 = statistics.median(delays), delays[math.ceil(0.95 * TOLD) - 1]
    await _close(visitors)
    each, name = (there.memory - alone.memory) / SOCKETS / 1000, f"{SOCKETS:,} idle sockets"
    more = (there.statements - alone.statements) / SOCKETS
    return [
        Row(
            f"{name}, memory of the web process (PSS), each",
            value=each,
            unit="KB",
            baseline_name="",
            baseline=0,
            ratio=0,
            bound=f"≤ {MOST_KB:g} KB",
            holds=each <= MOST_KB,
        ),
        Row(
            f"{name}, processor time of the web process",
            value=there.percent,
            unit="% of a core",
            baseline_name="no socket",
            baseline=alone.percent,
            ratio=_ratio(there.percent, alone.percent),
            bound=f"≤ {MOST_PERCENT:g} %",
            holds=there.percent <= MOST_PERCENT,
        ),
        Row(
            f"{name}, statements in {IDLE_SECONDS:.0f} s",
            value=there.statements,
            unit="",
            baseline_name="no socket",
            baseline=alone.statements,
            ratio=_ratio(there.statements, alone.statements),
            bound="none of a socket's own",
            holds=more < 0.1,
        ),
        Row(
            f"{name}, a message of another process arrives, p95 of {TOLD}",
            value=p95,
            unit="ms",
            baseline_name="median",
            baseline=median,
            ratio=p95 / median,
            bound=f"≤ {MOST_MS:g} ms",
            holds=p95 <= MOST_MS,
        ),
        Row(f"{name}, opened {AT_ONCE} at a time", SOCKETS / opened, "/s", "", 0, 0),
    ]


def _ratio(value: float, beside: float) -> float:
    return value / beside if beside else math.inf


# -- visitors ----------------------------------------------------------------------------------------------------------


Visitor = tuple[ClientConnection, UUID]


async def _open(ready: Stage, count: int) -> list[Visitor]:
    """So many widgets, each ready."""
    free = asyncio.Semaphore(AT_ONCE)

    async def visitor() -> Visitor:
        async with free:
            token, session = await asyncio.to_thread(ready.new_session)
            for _ in range(TRIES):
                if (talk := await _connected(ready, token)) is not None:
                    return talk, UUID(session)
                await asyncio.sleep(RETRY_SECONDS)
            raise RuntimeError("the web process takes no more sockets")

    return await asyncio.gather(*[visitor() for _ in range(count)])


async def _connected(ready: Stage, token: str) -> ClientConnection | None:
    """None where the web process asks to come back later. A browser sends no pings of its own and answers those of the
    server."""
    talk = await connect(
        f"{ready.socket_url}/ws/widget/{ready.deployment.public_key}/",
        origin=ready.url,  # type: ignore[arg-type]  # a text by another name
        additional_headers=_BROWSER,
        user_agent_header=None,
        ping_interval=None,
        open_timeout=60,
    )
    await talk.send(json.dumps({"type": "auth", "token": token, "after_seq": 0}))
    try:
        await until(talk, lambda frame: frame["type"] == "ready")
    except ConnectionClosed as closed:
        if closed.rcvd is None or closed.rcvd.code != TRY_LATER:
            raise
        return None
    return talk


async def _close(visitors: list[Visitor]) -> None:
    for talk, _ in visitors:
        await talk.close()


async def _delivery_ms(ready: Stage, talk: ClientConnection, session: UUID) -> float:
    """Milliseconds from the beginning of a message's transaction in this process to its frame at the visitor."""
    begun = await asyncio.to_thread(_say, ready, session)
    await until(talk, lambda frame: frame["type"] == "message")
    return (time.perf_counter() - begun) * 1000


def _say(ready: Stage, session: UUID) -> float:
    from apps.sessions import chronicle
    from apps.sessions.enums import EntryKind, Sender
    from apps.sessions.locks import lock_session
    from kernel.tenancy import tenant_scope

    begun = time.perf_counter()
    with tenant_scope(ready.deployment.tenant_id):
        chronicle.append(lock_session(session), kind=EntryKind.MESSAGE, sender=Sender.BOT, text="Are you still there?")
    return begun


# -- the web process ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Idle:
    """An idle minute: memory at its end in bytes, processor time in percent of a core, statements of the database."""

    memory: int
    percent: float
    statements: int


async def _idle(ready: Stage) -> _Idle:
    assert ready.process is not None
    web = psutil.Process(ready.process.pid)
    await asyncio.sleep(CALM_SECONDS)
    log = Path(ready.env["SILAS_VAR"]) / "log" / "postgres.log"
    spent, logged = sum(web.cpu_times()[:2]), log.stat().st_size
    await asyncio.sleep(IDLE_SECONDS)
    spent = sum(web.cpu_times()[:2]) - spent
    with log.open("rb") as file:
        file.seek(logged)
        statements = len(_STATEMENT.findall(file.read()))
    return _Idle(web.memory_full_info().pss, spent / IDLE_SECONDS * 100, statements)


def _log_statements(ready: Stage) -> None:
    with psycopg.connect(ready.env["SILAS_TEST_SUPERUSER_DSN"], autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET log_statement = 'all'")
        connection.execute("SELECT pg_reload_conf()")
