"""Measure 1,000 events a second to 100 streams of one web process, and from an event's commit to its webhook.

The streams are read by a process of their own, which notes when each number arrived; both read one machine's clock. One
process appends the events, ten to a transaction, and its own speed without streams is the baseline. The webhook's
receiver stands in this process.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from bench.report import Row
from bench.stage import Stage, stage
from silas_platform.up.environment import for_program

STREAMS, EVENTS_A_SECOND, AT_ONCE, SECONDS, POSTS = 100, 1000, 10, 10, 60
_ID = re.compile(rb"id: (\d+)\n")


def run() -> list[Row]:
    env = {"SILAS_WEBHOOKS_PRIVATE": "1", "SILAS_EVENT_STREAMS": str(STREAMS)}
    with stage(env) as ready:
        return [*_streams(ready), _webhooks(ready)]


def _streams(ready: Stage) -> Iterator[Row]:
    from apps.tenants.services import create_api_key
    from kernel.tenancy import tenant_scope

    with tenant_scope(ready.deployment.tenant_id):
        key = create_api_key("Bench").key
    total, found = EVENTS_A_SECOND * SECONDS, Path(ready.env["SILAS_VAR"]) / "heard.json"
    alone = _appended(ready.deployment.tenant_id, total // 4)[0]
    first = total // 4
    argv = [sys.executable, "-m", "bench.events", ready.url, key, str(first + total), str(found)]
    reader = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert reader.stdout is not None
    reader.stdout.readline()  # all streams are open
    rate, committed = _appended(ready.deployment.tenant_id, total)
    reader.wait(timeout=120)
    heard: list[list[tuple[int, float]]] = json.loads(found.read_text())
    complete = sum(bool(each) and each[-1][0] == first + total for each in heard)
    late = [delay for each in heard for delay in _delays([(first + seq, said) for seq, said in committed], each)]
    name = f"events a second to {STREAMS} streams"
    yield Row(name, rate, "/s", "appended without streams", alone, rate / alone, "≥ 1,000 /s", rate >= EVENTS_A_SECOND)
    yield Row(
        "streams that received every event",
        complete,
        "",
        "streams",
        STREAMS,
        complete / STREAMS,
        "1",
        complete == STREAMS,
    )
    p95 = _p95(late) * 1000
    yield Row(
        "commit to arrival in a stream under that load, p95",
        p95,
        "ms",
        "a second",
        1000,
        p95 / 1000,
        "≤ 1",
        p95 <= 1000,
    )


def _appended(tenant_id: Any, total: int) -> tuple[float, list[tuple[int, float]]]:
    """Append so many events at the rate asked for: the rate reached, and how many were committed when."""
    committed: list[tuple[int, float]] = []
    begun = time.time()
    for number in range(total // AT_ONCE):
        time.sleep(max(0.0, begun + number * AT_ONCE / EVENTS_A_SECOND - time.time()))
        _emit(tenant_id, AT_ONCE)
        committed.append(((number + 1) * AT_ONCE, time.time()))
    return total / (time.time() - begun), committed


def _delays(committed: list[tuple[int, float]], heard: list[tuple[int, float]]) -> Iterator[float]:
    arrivals = iter(heard)
    upto, moment = next(arrivals, (0, 0.0))
    for seq, said in committed:
        while upto < seq:
            upto, moment = next(arrivals, (1 << 62, time.time()))
        yield moment - said


def _emit(tenant_id: Any, count: int) -> None:
    from apps.events.services import emit
    from kernel.tenancy import tenant_scope

    with tenant_scope(tenant_id):
        for _ in range(count):
            emit("card.created", card=str(uuid4()), kind="gate", state="open", risk="low")


def _webhooks(ready: Stage) -> Row:
    from apps.autonomy.models import Webhook
    from kernel.secrets_key import seal_secret
    from kernel.tenancy import tenant_scope

    with _receiver() as (url, arrived), _trusted_worker(ready):
        with tenant_scope(ready.deployment.tenant_id):
            hook = Webhook(url=url, events=["card.created"])
            hook.sealed_secret = seal_secret(b"bench", belongs_to=f"webhook:{hook.pk}")
            hook.save()
        delays = []
        for _ in range(POSTS + 5):
            arrived.clear()
            _emit(ready.deployment.tenant_id, 1)
            said = time.time()
            if not arrived.wait(60):
                raise RuntimeError("a webhook did not arrive")
            delays.append(time.time() - said)
            time.sleep(0.05)
    p95 = _p95(delays[5:]) * 1000
    return Row("commit to webhook's arrival, idle, p95", p95, "ms", "a second", 1000, p95 / 1000, "≤ 1", p95 <= 1000)


@contextlib.contextmanager
def _receiver() -> Iterator[tuple[str, threading.Event]]:
    arrived = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            arrived.set()
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", arrived
        server.shutdown()


@contextlib.contextmanager
def _trusted_worker(ready: Stage) -> Iterator[None]:
    env = for_program({**os.environ, **ready.env}, "trusted")
    size = ["--loglevel=ERROR", "--concurrency", "2", "--without-gossip", "--without-mingle", "-Q", "trusted"]
    argv = [sys.executable, "-m", "celery", "-A", "silas_platform", "worker", *size]
    process = subprocess.Popen(argv, env=env)
    try:
        time.sleep(8)  # a worker that is not up yet would be measured with its start
        yield
    finally:
        process.terminate()
        process.wait()


async def _read(url: str, key: str, total: int) -> list[list[tuple[int, float]]]:
    """For each stream what arrived when: (number, time), a pair for each piece."""
    opened, parts = asyncio.Semaphore(0), urlsplit(url)

    async def one() -> list[tuple[int, float]]:
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=1 << 24)
        writer.write(
            f"GET /api/v1/events HTTP/1.1\r\nHost: {parts.netloc}\r\nAuthorization: Bearer {key}\r\n\r\n".encode()
        )
        await reader.readuntil(b"id: ")
        opened.release()
        heard, rest = [(0, time.time())], b""
        while heard[-1][0] < total and (piece := await asyncio.wait_for(reader.read(1 << 20), 60)):
            rest += piece
            if found := _ID.findall(rest):
                heard.append((int(found[-1]), time.time()))
                rest = rest[-64:]
        writer.close()
        return heard

    tasks = [asyncio.create_task(one()) for _ in range(STREAMS)]
    for _ in range(STREAMS):
        await opened.acquire()
    print("open", flush=True)
    return await asyncio.gather(*tasks)


def _p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


if __name__ == "__main__":
    Path(sys.argv[4]).write_text(json.dumps(asyncio.run(_read(sys.argv[1], sys.argv[2], int(sys.argv[3])))))
