"""Measure the cost of reporting to the safety loop before every action.

Goals: the evaluator alone at most 0.1 ms with 500 patterns, and linear in the hint; a committed and
audited `record_execution_step` at most three times a tool that does nothing on the same SDK's server over the same
transport, its p99 with 20 agents at once at most four times its own p50; inside a guarded call at most 0.3 ms; the
scorer's tiers on its written set.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from bench.bare_mcp import BARE_MCP_PATH, TOOL
from bench.report import Row
from bench.stage import Stage, stage

ROOT = Path(__file__).resolve().parent.parent
PATTERNS, LENGTH = 500, 8000
CALLS, WARM, AGENTS, EACH = 300, 40, 20, 25
MOST_MS, MOST_GROWTH, MOST, MOST_P99, MOST_INSIDE_MS = 0.1, 3.0, 3.0, 4.0, 0.3
LEAST_RIGHT = 95.0
HINTS = (
    "reading the manual of the printer",
    "list the open orders of customer 4711 and show their totals",
    "look up the weather in Hamburg for tomorrow morning",
    "summarise the newest letter of the customer in two sentences",
)
Ask = Callable[[], Awaitable[Any]]


def run() -> list[Row]:
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    with stage() as ready:
        rows = [_evaluator(), *_globs(), *_scorer(), _inside(ready)]
        rows += asyncio.run(_over_http(ready))
        rows += asyncio.run(_over_a_pipe(ready))
    return rows


def _median(step: Callable[[int], object], times: int = 2000, warm: int = 100) -> float:
    """In ms."""
    spent = []
    for at in range(times + warm):
        begun = time.perf_counter()
        step(at)
        spent.append((time.perf_counter() - begun) * 1000)
    return statistics.median(spent[warm:])


def _evaluator() -> Row:
    """500 patterns that match none of the hints, in three lists, so that each is looked at."""
    from apps.safety.rules.stages import evaluate
    from apps.safety.schemas import Intended, Policy

    many = [f"*{word} the?{at} *thing*" for at in range(PATTERNS // 5) for word in ("drop", "wipe", "pay", "send", "x")]
    third = PATTERNS // 3
    full = Policy(deny=many[:third], requires_approval=many[third : 2 * third], auto_approve=many[2 * third :])
    intended = [Intended(hint) for hint in HINTS]
    ours = _median(lambda at: evaluate(full, intended[at % len(intended)]))
    bare = _median(lambda at: evaluate(Policy(), intended[at % len(intended)]))
    name = f"evaluator alone, {PATTERNS} patterns, p50"
    return Row(name, ours, "ms", "no pattern", bare, ours / bare, f"≤ {MOST_MS:g} ms", ours <= MOST_MS)


def _globs() -> list[Row]:
    from apps.safety.rules.globs import compile_glob

    shapes = {"40 stars": "*a" * 40 + "b*c", "400 question marks": "*" + "?a" * 200 + "b*c", "?* 200 times": "?*" * 200}
    return [_growth(name, compile_glob(pattern)) for name, pattern in shapes.items()]


def _growth(name: str, glob: Any) -> Row:
    whole, half = ("a" * length + "bxc" for length in (LENGTH, LENGTH // 2))
    ours, bare = (_median(lambda _, said=said: glob.matches(said), 60, 5) for said in (whole, half))
    told = f"glob with {name} against {LENGTH} characters"
    ratio = ours / bare
    return Row(told, ours, "ms", "half as many", bare, ratio, f"≤ {MOST_GROWTH:g}", ratio <= MOST_GROWTH)


def _scorer() -> list[Row]:
    """The written set: right or stricter, and how many are exactly right."""
    from apps.safety.rules.normalization import read_hint
    from apps.safety.rules.scoring import score_hint, tier_of

    order = ["advisory", "confirm", "verify", "danger_zone"]
    rows = json.loads((ROOT / "tests/data/safety_hints.json").read_text("utf-8"))
    told = [
        (order.index(tier_of(score_hint(read_hint(row["hint"])).value).value), order.index(row["tier"])) for row in rows
    ]
    safe = 100 * sum(found >= want for found, want in told) / len(told)
    exact = 100 * sum(found == want for found, want in told) / len(told)
    low = sum(found < 2 <= want for found, want in told)
    name = f"{len(told)} labelled hints in their tier or a stricter one"
    return [
        Row(name, safe, "%", "exactly right", exact, safe / exact, f"≥ {LEAST_RIGHT:g} %", safe >= LEAST_RIGHT),
        Row("destructive hints below verify", low, "", "allowed", 0, 0.0, "0", low == 0),
    ]


def _inside(ready: Stage) -> Row:
    """The question alone, in a transaction that is open already, as the guard asks it."""
    from apps.safety.services import judge_internal_call
    from kernel.tenancy import tenant_scope

    with tenant_scope(ready.deployment.tenant_id):
        ours = _median(
            lambda at: judge_internal_call("chatbot:bench", name="bench", intent="run_skill", tool="x", args={"n": at}),
            500,
        )
        bare = _median(lambda _: _one_select(), 500)
    held = ours <= MOST_INSIDE_MS
    return Row("directive inside a guarded call, p50", ours, "ms", "one SELECT", bare, ours / bare, "≤ 0.3 ms", held)


def _one_select() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        cursor.fetchone()


def _key(ready: Stage) -> str:
    from apps.tenants.enums import KeyScope
    from apps.tenants.services import create_api_key
    from kernel.tenancy import tenant_scope

    with tenant_scope(ready.deployment.tenant_id):
        return create_api_key("Bench", scopes=[KeyScope.SAFETY_AGENT]).key


async def _timed(ask: Ask) -> float:
    begun = time.perf_counter()
    await ask()
    return (time.perf_counter() - begun) * 1000


async def _one_by_one(ours: Ask, bare: Ask) -> tuple[list[float], list[float]]:
    """They take turns; the first few warm up and do not count."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(CALLS + WARM):
        times[0].append(await _timed(ours))
        times[1].append(await _timed(bare))
    return times[0][WARM:], times[1][WARM:]


def _beside(transport: str, ours: list[float], bare: list[float]) -> Row:
    value, base = statistics.median(ours), statistics.median(bare)
    name = f"record_execution_step over {transport}, p50"
    return Row(name, value, "ms", "a tool that does nothing", base, value / base, f"≤ {MOST:g}", value / base <= MOST)


async def _agent(stack: AsyncExitStack, way: Any) -> Ask:
    """A client whose agent is at work, and the report that it makes."""
    client = await stack.enter_async_context(Client(way))
    name = f"agent-{uuid4().hex[:8]}"

    async def call(endpoint: str, operation: str, **params: Any) -> dict[str, Any]:
        given = {"operation": operation, "params": {"element_name": name, **params}}
        answer = await client.call_tool(f"mcp_aql_{endpoint}", given)
        said: dict[str, Any] = json.loads(answer.content[0].text)  # type: ignore[union-attr]  # this server answers in text
        assert said["success"], said
        return said

    await call("execute", "execute_agent")

    async def step() -> None:
        said = await call("create", "record_execution_step", next_action_hint=HINTS[0])
        assert said["data"]["autonomy"]["continue"] is True, said

    return step


async def _nothing(stack: AsyncExitStack, way: Any) -> Ask:
    client = await stack.enter_async_context(Client(way))
    return lambda: client.call_tool(TOOL, {})


def _unlimited(ready: Stage) -> None:
    from apps.safety.services import write_policy
    from kernel.tenancy import tenant_scope

    with tenant_scope(ready.deployment.tenant_id):
        write_policy({"max_steps": 0}, actor="user:bench")


async def _over_http(ready: Stage) -> list[Row]:
    await asyncio.to_thread(_unlimited, ready)
    async with AsyncExitStack() as stack:

        async def way(path: str) -> Any:
            headers = {"authorization": f"Bearer {await asyncio.to_thread(_key, ready)}"}
            http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=60))
            return streamable_http_client(f"{ready.url}{path}", http_client=http)

        ours, bare = await _agent(stack, await way("/mcp/safety")), await _nothing(stack, await way(BARE_MCP_PATH))
        alone = await _one_by_one(ours, bare)
        many = [await _agent(stack, await way("/mcp/safety")) for _ in range(AGENTS)]
        crowd = await _at_once(many)
    middle, worst = statistics.median(crowd), statistics.quantiles(crowd, n=100)[98]
    name, ratio = f"the same, {AGENTS} agents at once, p99", worst / middle
    return [
        _beside("HTTP", *alone),
        Row(name, worst, "ms", "its own p50", middle, ratio, f"≤ {MOST_P99:g}", ratio <= MOST_P99),
    ]


async def _at_once(agents: list[Ask]) -> list[float]:
    async def steadily(step: Ask) -> list[float]:
        return [await _timed(step) for _ in range(EACH + 5)]

    found = await asyncio.gather(*(steadily(step) for step in agents))
    return [spent for each in found for spent in each[5:]]


async def _over_a_pipe(ready: Stage) -> list[Row]:
    key = await asyncio.to_thread(_key, ready)
    env = {**os.environ, **ready.env, "SILAS_SAFETY_KEY": key}
    ours_way, bare_way = (
        StdioServerParameters(command=sys.executable, args=args, cwd=str(ROOT), env=env)
        for args in (["manage.py", "safety_server"], ["-m", "bench.bare_mcp"])
    )
    async with AsyncExitStack() as stack:
        ours, bare = await _agent(stack, ours_way), await _nothing(stack, bare_way)
        return [_beside("stdio", *await _one_by_one(ours, bare))]
