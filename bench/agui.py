"""Measure how soon an AG-UI client reads the first piece of a streamed answer.

Counted from the first letter of the message, as in `bench.first_delta`: the same turn, read over AG-UI.
"""

from __future__ import annotations

import json
import statistics
import time
from typing import Any
from uuid import uuid4

import httpx2

from bench.first_delta import LONG, WARM_UP
from bench.report import Row
from bench.stage import Stage, stage
from tests.fakes.openai_server import direct, serving_in_thread

RUNS = 30


def run() -> list[Row]:
    """Worst of thirty runs; the provider is a local server whose tokens come 40 ms apart."""
    reply = direct(LONG, pieces=12, between=0.04)
    with serving_in_thread([reply]) as provider:
        env = {"OPENAI_BASE_URL": provider.base_url, "OPENAI_API_KEY": "bench"}
        with stage(env, model="openai-chat:gpt-4o-mini") as ready:
            delays = _delays(ready, provider)
    middle, worst = statistics.median(delays), max(delays)
    name = "AG-UI: first text after the model's first word, worst of 30"
    return [Row(name, worst, "ms", "median", middle, worst / middle, "≤ 50 ms", worst <= 50)]


def _delays(ready: Stage, provider: Any) -> list[float]:
    from apps.tenants.services import create_api_key
    from kernel.tenancy import tenant_scope

    with tenant_scope(ready.deployment.tenant_id):
        key = create_api_key("Bench").key
    address, thread, delays = f"{ready.url}/api/v1/agents/{ready.deployment.pk}/agui", str(uuid4()), []
    with httpx2.Client(headers={"Authorization": f"Bearer {key}"}, timeout=60) as client:
        for _ in range(WARM_UP + RUNS):
            provider.sent.clear()
            said = {"id": str(uuid4()), "role": "user", "content": "Hello there"}
            body = {"threadId": thread, "runId": str(uuid4()), "messages": [said]}
            moment = 0.0
            with client.stream("POST", address, json=body) as answer:
                for line in answer.iter_lines():
                    kind = json.loads(line.removeprefix("data: "))["type"] if line.startswith("data: ") else ""
                    if kind == "TEXT_MESSAGE_CONTENT" and not moment:
                        moment = time.perf_counter()
            delays.append((moment - provider.message_began_at()) * 1000)
    return delays[WARM_UP:]
