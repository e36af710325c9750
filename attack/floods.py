"""Hostile traffic and bytes: sockets that flood, documents that exhaust their reader, internal addresses.

Floods run against a real web process, from a process of their own with the lowest priority: on a machine with few cores
an attacker beside the server must not be measured as one inside it. Rounds without and with the flood take turns, so
that both see the same machine. Documents are read as the web process reads them; what counts is
the processor time that this takes of the process that asks. Addresses are a list written by hand, not the product's.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import os
import random
import statistics
import struct
import time
from dataclasses import dataclass, field, replace
from multiprocessing.sharedctypes import Synchronized
from urllib.parse import urlsplit

import psutil
import websockets
from websockets.asyncio.client import ClientConnection

from attack import bombs
from attack.report import Figure

FLOODS, VISITORS, PAUSE_SECONDS = 20, 12, 1.2
MOST_RATIO, OWN_SECONDS = 2.0, 1.0
# The limits of an installation, which benchmarks lift, and a proxy that says who asks.
_ENV = {
    "SILAS_TRUSTED_PROXIES": "1",
    "SILAS_SOCKET_FRAMES": "100",
    "SILAS_SOCKET_HANDSHAKES": "200",
    "VISITOR_BURST": "40",
    "SILAS_MESSAGES_A_MINUTE": "60",
    "SILAS_TENANT_MESSAGES_A_MINUTE": "6000",
    "SILAS_TENANT_PENDING_TURNS": "500",
}


def run(short: bool) -> list[Figure]:
    return [*_floods(short), _documents(short), _addresses()]


# -- sockets -----------------------------------------------------------------------------------------------------------


def _floods(short: bool) -> list[Figure]:
    from bench.stage import Stage, deployment, start_web

    rounds, seconds = (2, 3.0) if short else (4, 8.0)
    with contextlib.ExitStack() as stack:
        env = {**os.environ, **_ENV}
        place = deployment("builtin:grounded")
        url, process = start_web(env, stack)
        stage = Stage(url, env, place)
        tokens = [stage.new_session()[0] for _ in range(FLOODS + VISITORS)]
        url = f"{stage.socket_url}/ws/widget/{place.public_key}/"
        web = psutil.Process(process.pid)
        quiet, flooded, tried = asyncio.run(_rounds(web, url, tokens, rounds, seconds))
    ratio, spent = _p95(flooded.acks) / _p95(quiet.acks), flooded.spent / quiet.spent
    told = f"{ratio:.2f} x ({_p95(quiet.acks) * 1000:.0f} ms quiet, {_p95(flooded.acks) * 1000:.0f} ms flooded)"
    name = f"ack p95 under floods of {FLOODS} sockets"
    return [
        Figure(name, tried, told, f"<= {MOST_RATIO:g} x", ratio <= MOST_RATIO, timed=True),
        Figure(
            "web's processor time an ack",
            tried,
            f"{spent:.2f} x",
            f"<= {MOST_RATIO:g} x",
            spent <= MOST_RATIO,
            timed=True,
        ),
    ]


@dataclass
class _Phase:
    """Seconds to each `ack`, and the processor's seconds that the web process took meanwhile."""

    acks: list[float] = field(default_factory=list)
    busy: float = 0.0

    @property
    def spent(self) -> float:
        return self.busy / len(self.acks)


async def _rounds(
    web: psutil.Process, url: str, tokens: list[str], rounds: int, seconds: float
) -> tuple[_Phase, _Phase, int]:
    """Quiet, under floods, and how many frames and handshakes the floods were."""
    quiet, flooded, sent = _Phase(), _Phase(), multiprocessing.Value("q", 0)
    async with contextlib.AsyncExitStack() as stack:
        lines = [await _present(stack, url, token, place) for place, token in enumerate(tokens[FLOODS:])]
        await _talk(lines, 1.0)  # what is slow once is over
        for _ in range(rounds):
            await _measure(web, lines, seconds, quiet)
            flood = multiprocessing.Process(target=_flood, args=(url, tokens[:FLOODS], seconds + 1, sent))
            flood.start()
            await asyncio.sleep(0.5)
            await _measure(web, lines, seconds, flooded)
            await asyncio.to_thread(flood.join)
    return quiet, flooded, sent.value


async def _measure(web: psutil.Process, lines: list[ClientConnection], seconds: float, phase: _Phase) -> None:
    before = web.cpu_times()
    phase.acks += await _talk(lines, seconds)
    after = web.cpu_times()
    phase.busy += after.user + after.system - before.user - before.system


async def _present(stack: contextlib.AsyncExitStack, url: str, token: str, place: int) -> ClientConnection:
    proxied = {"X-Forwarded-For": f"198.51.100.{place + 1}"}
    line = await stack.enter_async_context(websockets.connect(url, additional_headers=proxied, open_timeout=30))
    await line.send(json.dumps({"type": "auth", "token": token}))
    while json.loads(await line.recv())["type"] != "ready":
        pass
    return line


async def _talk(lines: list[ClientConnection], seconds: float) -> list[float]:
    return [each for found in await asyncio.gather(*(_one(line, seconds) for line in lines)) for each in found]


async def _one(line: ClientConnection, seconds: float) -> list[float]:
    found, until = [], time.monotonic() + seconds
    await asyncio.sleep(random.uniform(0, PAUSE_SECONDS))
    while time.monotonic() < until:
        name = f"m{random.getrandbits(60):x}"
        began = time.monotonic()
        await line.send(json.dumps({"type": "message", "text": "hello", "client_id": name}))
        while True:
            frame = json.loads(await asyncio.wait_for(line.recv(), 60))
            if frame["type"] == "ack" and frame["client_id"] == name:
                break
        found.append(time.monotonic() - began)
        await asyncio.sleep(PAUSE_SECONDS)
    return found


def _p95(found: list[float]) -> float:
    return statistics.quantiles(found, n=20)[-1]


def _flood(url: str, tokens: list[str], seconds: float, sent: Synchronized[int]) -> None:
    """In a process of its own: each socket sends its kind of flood and, when it is thrown out, comes back at once."""
    os.nice(19)
    asyncio.run(_flood_all(url, tokens, time.monotonic() + seconds, sent))


async def _flood_all(url: str, tokens: list[str], until: float, sent: Synchronized[int]) -> None:
    await asyncio.gather(*(_flood_one(url, token, place, until, sent) for place, token in enumerate(tokens)))


async def _flood_one(url: str, token: str, place: int, until: float, sent: Synchronized[int]) -> None:
    parts = urlsplit(url)
    auth = _frame(1, json.dumps({"type": "auth", "token": token}).encode())
    kinds = (
        _frame(1, b"{"),
        auth + _frame(1, b'{"type": "x"}') * 20,
        auth + _frame(1, b'{"type": "typing"}') * 20,
        _frame(9, b"ping"),
        _frame(2, b"\0" * 100),
        auth + _frame(1, json.dumps({"type": "message", "text": "x" * 3000}).encode()) * 20,
        _frame(1, b"a", final=False) + _frame(0, b"a", final=False) * 50,
        b"",  # a storm of reconnects
        None,  # a handshake that never ends
        _frame(1, b"x" * 15_000),
    )
    flood = kinds[place % len(kinds)]
    while time.monotonic() < until:
        with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
            try:
                async with asyncio.timeout(max(0.1, until - time.monotonic())):
                    sent.value += await _send(reader, writer, parts.path, place, flood)
            finally:
                writer.transport.abort()


async def _send(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, place: int, flood: bytes | None
) -> int:
    """How many frames went out before it was thrown out."""
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Forwarded-For: 203.0.113.{place + 1}\r\n"
    head += "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    if flood is None:
        writer.write(head.encode())
        await asyncio.sleep(60)
    writer.write(f"{head}Sec-WebSocket-Key: {'A' * 22}==\r\n\r\n".encode())
    answer = await reader.readuntil(b"\r\n\r\n")
    count = 0
    if b" 101 " in answer.split(b"\r\n")[0] and flood:
        with contextlib.suppress(OSError):
            while True:
                writer.write(flood * 50)
                await writer.drain()
                count += 50
                await asyncio.sleep(0)
    return count or 1


def _frame(opcode: int, payload: bytes = b"", *, final: bool = True) -> bytes:
    head = (0x80 if final else 0) | opcode
    if len(payload) < 126:
        return struct.pack("!BB4x", head, 0x80 | len(payload)) + payload
    return struct.pack("!BBH4x", head, 0x80 | 126, len(payload)) + payload


# -- documents ---------------------------------------------------------------------------------------------------------


def _documents(short: bool) -> Figure:
    """Those that took more than a second of the asking process's own processor, or longer than their limit."""
    from apps.knowledge import sandboxed_parsing

    if short:
        sandboxed_parsing._FILE = replace(sandboxed_parsing._FILE, seconds=2)
    limit = sandboxed_parsing._FILE.seconds + 30
    hostile = {**bombs.DOCUMENTS}
    names = ["forms.pdf", "operators.pdf", "tower.html", "laughs.md"] if short else list(hostile)
    occupied = []
    for name in names:
        data = hostile[name]()
        began, busy = time.monotonic(), time.process_time()
        sandboxed_parsing.read_file(data, name)
        if time.process_time() - busy > OWN_SECONDS or time.monotonic() - began > limit:
            occupied.append(name)
    told = f"{len(occupied)} {' '.join(occupied)}".strip()
    return Figure("hostile documents that occupied web", len(names), told, "0", not occupied)


# -- addresses ---------------------------------------------------------------------------------------------------------

INNER = (
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.8.8.8",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.0.8",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "100::1",
    "2001::1",
    "2001:2::1",
    "2001:10::1",
    "2001:db8::1",
    "2002::1",
    "3fff::1",
    "4000::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fd20:ce::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
)
WRAPPINGS = (
    "::{}",
    "::ffff:{}",
    "::ffff:0:{}",
    "64:ff9b::{}",
    "64:ff9b:1::{}",
    "2606:4700::5efe:{}",
    "2606:4700::200:5efe:{}",
)


def _addresses() -> Figure:
    from kernel.http.resolver import RequestRefused, resolve_url
    from sandbox.egress import choose_address

    wrapped = [form.format(each) for form in WRAPPINGS for each in INNER if ":" not in each]
    reached = []
    for address in (*INNER, *wrapped):
        host = f"[{address}]" if ":" in address else address
        with contextlib.suppress(RequestRefused):
            resolve_url(urlsplit(f"http://{host}/"), allow_private=False)
            reached.append(address)
        if choose_address(f"{host}:80", [address], private=()):
            reached.append(address)
    return Figure("inner addresses reached", len(INNER) + len(wrapped), str(len(reached)), "0", not reached)
