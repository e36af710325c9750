"""Measure how soon a visitor sees the first piece of a streamed answer.

Counted from the first letter of the message: a model's structured answer begins with JSON that is not shown.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from typing import Any

from bench.report import Row
from bench.stage import Stage, stage
from bench.visitor import conversation, is_answer, say, until
from tests.fakes.openai_server import direct, serving_in_thread

WARM_UP = 3
LONG = "A burst pipe is covered, and so is the search for it, up to the sum your schedule names. " * 3


def run() -> list[Row]:
    """Worst of thirty turns; the provider is a local server whose tokens come 40 ms apart."""
    reply = direct(LONG, pieces=12, between=0.04)
    with serving_in_thread([reply]) as provider:
        env = {"OPENAI_BASE_URL": provider.base_url, "OPENAI_API_KEY": "bench"}
        with stage(env, model="openai-chat:gpt-4o-mini") as ready:
            delays = asyncio.run(_delays(ready, provider))
    middle, worst = statistics.median(delays), max(delays)
    name = "first delta after the model's first word, worst of 30"
    return [Row(name, worst, "ms", "median", middle, worst / middle, "≤ 50 ms", worst <= 50)]


async def _delays(ready: Stage, provider: Any) -> list[float]:
    delays = []
    async with await conversation(ready) as talk:
        for number in range(WARM_UP + 30):
            provider.sent.clear()
            await say(talk, number, "Hello there")
            await until(talk, lambda frame: frame["type"] == "delta")
            delays.append((time.perf_counter() - provider.message_began_at()) * 1000)
            await until(talk, is_answer)
    return delays[WARM_UP:]
