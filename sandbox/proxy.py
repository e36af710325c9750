"""HTTP proxy of a run: the harness accepts the connections that the sandboxed command makes to its allowed places.

One proxy for each run with `egress`, in a thread of its own, on the listening socket that the keeper made in the run's
network (`keeper.doors`). It serves CONNECT, and requests with an absolute `http:` URL. It resolves names itself and
calls the address that it has checked. Refusals are answered with 403 and `egress_refused`; beyond its limits the run is
stopped.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from sandbox.egress import choose_address, format_place, parse_place, parse_places
from sandbox.spec import EgressUsage, SandboxSpec

_HEAD_BYTES = 32_768
_CHUNK = 65_536
_STEP_SECONDS = 10.0
_END_SECONDS = 2.0
_OWN_HEADERS = (b"host:", b"connection:", b"proxy-", b"keep-alive:")
_Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Refused(Exception):
    """`status` and `code` are sent to the run."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status, self.code = status, code


@dataclass
class Counts:
    """Traffic by place. Only allowed places are named; other requests are the script's own text and only counted."""

    connections: dict[str, int] = field(default_factory=dict)
    bytes_out: dict[str, int] = field(default_factory=dict)
    bytes_in: dict[str, int] = field(default_factory=dict)
    refused: int = 0

    def reached(self) -> tuple[EgressUsage, ...]:
        return tuple(
            EgressUsage(place, times, self.bytes_out.get(place, 0), self.bytes_in.get(place, 0))
            for place, times in sorted(self.connections.items())
        )

    @property
    def bytes(self) -> int:
        return sum(self.bytes_out.values()) + sum(self.bytes_in.values())


class Proxy:
    """`over` is called once, from the proxy's thread, when the run has used up its traffic limit."""

    def __init__(
        self, door: socket.socket, spec: SandboxSpec, private: Collection[str], over: Callable[[], None]
    ) -> None:
        self.counts = Counts()
        self._door, self._spec, self._over = door, spec, over
        self._places, self._private = parse_places(spec.egress), parse_places(private)
        self._open = 0
        self._loop = asyncio.new_event_loop()
        self._ending = asyncio.Event()
        self._thread = threading.Thread(target=self._serve, name="sandbox-egress", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop answering. When this returns, nothing more is sent for open connections."""
        with contextlib.suppress(RuntimeError):  # it has ended by itself
            self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join(_END_SECONDS)

    def _serve(self) -> None:
        try:
            self._loop.run_until_complete(self._answer())
        finally:
            self._door.close()
            self._loop.close()

    async def _answer(self) -> None:
        server = await asyncio.start_server(self._guarded, sock=self._door, limit=_HEAD_BYTES)
        await self._ending.wait()
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        # A connection that is open now must send nothing more once the run has ended.
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _guarded(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open <= 2 * self._spec.egress_connections:  # else: who only holds lines open gets none
                await self._one((reader, writer))
        except Refused as no:
            self.counts.refused += 1
            writer.write(_refusal_response(no))
            with contextlib.suppress(OSError, TimeoutError):
                await asyncio.wait_for(writer.drain(), _STEP_SECONDS)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass  # either side has gone
        finally:
            self._open -= 1
            writer.close()

    async def _one(self, inside: _Pair) -> None:
        request, headers = await _read_head(inside[0])
        host, port, rewritten = _target(request, headers)
        place = format_place(host, port)
        if place not in self._places:
            raise Refused(403, "egress_refused")
        # Counted before the call: many connections at once must not pass together.
        if sum(self.counts.connections.values()) >= self._spec.egress_connections:
            raise Refused(429, "egress_limit")
        self.counts.connections[place] = self.counts.connections.get(place, 0) + 1
        outside = await self._called(place, host, port)
        try:
            if rewritten:
                self._count(self.counts.bytes_out, place, len(rewritten))
                outside[1].write(rewritten)
            else:
                inside[1].write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await self._relay(inside, outside, place)
        finally:
            outside[1].close()

    async def _called(self, place: str, host: str, port: int) -> _Pair:
        """Connect to the very address that was checked."""
        try:
            infos = await asyncio.wait_for(self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM), _STEP_SECONDS)
        except (OSError, UnicodeError, TimeoutError):
            raise Refused(502, "no_such_host") from None
        address = choose_address(place, [str(info[4][0]) for info in infos], private=self._private)
        if not address:
            raise Refused(403, "egress_refused")
        try:
            return await asyncio.wait_for(asyncio.open_connection(address, port), _STEP_SECONDS)
        except (OSError, TimeoutError):
            raise Refused(502, "not_reached") from None

    async def _relay(self, inside: _Pair, outside: _Pair, place: str) -> None:
        ways = [
            asyncio.ensure_future(self._pump(inside[0], outside[1], self.counts.bytes_out, place)),
            asyncio.ensure_future(self._pump(outside[0], inside[1], self.counts.bytes_in, place)),
        ]
        try:
            await asyncio.gather(*ways)
        finally:
            for way in ways:
                way.cancel()

    async def _pump(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, counted: dict[str, int], place: str
    ) -> None:
        while data := await source.read(_CHUNK):
            self._count(counted, place, len(data))
            target.write(data)
            await target.drain()
        if target.can_write_eof():
            target.write_eof()

    def _count(self, counted: dict[str, int], place: str, size: int) -> None:
        """Count before forwarding, so that not a byte more than allowed leaves."""
        if self.counts.bytes + size > self._spec.egress_bytes:
            self._over()
            raise ConnectionAbortedError("egress_limit")
        counted[place] = counted.get(place, 0) + size


async def _read_head(reader: asyncio.StreamReader) -> tuple[bytes, list[bytes]]:
    try:
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _STEP_SECONDS)
    except asyncio.LimitOverrunError:
        raise Refused(431, "head_too_large") from None
    request, *headers = head[:-4].split(b"\r\n")
    return request, headers


def _target(request: bytes, headers: list[bytes]) -> tuple[str, int, bytes]:
    """(host, port, bytes to send first); the last is empty for a tunnel."""
    try:
        method, url, version = request.decode("ascii").split(" ")
    except ValueError:
        raise Refused(400, "malformed") from None
    if version not in {"HTTP/1.1", "HTTP/1.0"} or not method.isalpha():
        raise Refused(400, "malformed")
    if method == "CONNECT":
        return *_require_place(url), b""
    parts = _split(url)
    host, port = _require_place(parts.netloc if _has_port(parts.netloc) else f"{parts.netloc}:80")
    # Rebuilt from the parts that were checked, so that no other reading of the URL reaches the host.
    path = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
    return host, port, _rewrite_request(method, path, format_place(host, port), headers)


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
    except ValueError:
        raise Refused(400, "malformed") from None
    if parts.scheme != "http" or "@" in parts.netloc:
        raise Refused(400, "malformed")
    return parts


def _has_port(netloc: str) -> bool:
    return netloc.rpartition("]")[2].rpartition(":")[1] == ":"


def _require_place(text: str) -> tuple[str, int]:
    place = parse_place(text)
    if place is None:
        raise Refused(400, "malformed")
    return place


def _rewrite_request(method: str, path: str, place: str, headers: list[bytes]) -> bytes:
    """Rewrite for the host alone and close after one response: further requests need a new connection."""
    kept = [line for line in headers if not line.lower().startswith(_OWN_HEADERS)]
    first = [f"{method} {path} HTTP/1.1".encode(), f"Host: {place.removesuffix(':80')}".encode(), b"Connection: close"]
    return b"\r\n".join([*first, *kept]) + b"\r\n\r\n"


def _refusal_response(no: Refused) -> bytes:
    body = f"{no.code}\n".encode()
    head = f"HTTP/1.1 {no.status} {no.code}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body
