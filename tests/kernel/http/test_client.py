"""What every outgoing request keeps to: the checked address, one origin, and a bounded answer that is unpacked once."""

from __future__ import annotations

import asyncio
import gzip
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from kernel.http.client import open_client
from kernel.http.resolver import RequestRefused

ANSWERS = {
    "/plain": ({}, b"x" * 1000),
    "/packed": ({"Content-Encoding": "gzip"}, gzip.compress(b"x" * 1000)),
    "/bomb": ({"Content-Encoding": "gzip"}, gzip.compress(b"x" * 5_000_000)),
    "/twice": ({"Content-Encoding": "gzip, gzip"}, gzip.compress(gzip.compress(b"x"))),
    "/lie": ({"Content-Encoding": "gzip"}, b"not gzip"),
    "/other": ({"Content-Encoding": "br"}, b"x"),
    "/away": ({"Location": "http://169.254.169.254/"}, b""),
}


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/endless":
            self._send_without_end()
            return
        headers, body = ANSWERS[self.path]
        self.send_response(302 if "Location" in headers else 200)
        for name, value in {**headers, "Content-Length": str(len(body)), "X-Host": self.headers["Host"]}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _send_without_end(self) -> None:
        """A whole gzip stream, then bytes until the client is gone."""
        self.send_response(200)
        self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(gzip.compress(b"x" * 1000))
        with suppress(OSError):
            while True:
                self.wfile.write(b"x" * 1000)
                time.sleep(0.01)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    listener = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=listener.serve_forever)
    thread.start()
    yield f"http://localhost:{listener.server_port}"
    listener.shutdown()
    thread.join()
    listener.server_close()


async def get(url: str, *, private: bool = True, gzipped: bool = True, most: int = 1000, only: str = "") -> bytes:
    client = open_client(allow_private=private, max_bytes=most, step_seconds=5, accept_gzip=gzipped, only=only)
    async with client:
        return (await client.get(url)).content


async def refusal(url: str, **how: bool | int | str) -> str:
    with pytest.raises(RequestRefused) as refused:
        await get(url, **how)  # type: ignore[arg-type]  # one table of arguments for all
    return refused.value.code


async def test_answer_is_read_up_to_the_bound(server: str) -> None:
    assert await get(f"{server}/plain") == b"x" * 1000
    assert await refusal(f"{server}/plain", most=999) == "answer_too_large"


async def test_packed_answer_is_counted_unpacked(server: str) -> None:
    assert await get(f"{server}/packed") == b"x" * 1000
    assert await refusal(f"{server}/packed", most=999) == "answer_too_large"
    assert await refusal(f"{server}/bomb", most=1_000_000) == "answer_too_large"


async def test_nothing_is_read_behind_the_end_of_a_packed_answer(server: str) -> None:
    async with asyncio.timeout(3):
        assert await get(f"{server}/endless") == b"x" * 1000


@pytest.mark.parametrize("path", ["/twice", "/lie", "/other"])
async def test_answer_packed_in_another_way_is_refused(server: str, path: str) -> None:
    assert await refusal(server + path) == "answer_packed"


async def test_packed_answer_is_refused_where_gzip_is_not_taken(server: str) -> None:
    assert await refusal(f"{server}/packed", gzipped=False) == "answer_packed"


async def test_name_is_called_by_its_address_and_told_its_name(server: str) -> None:
    async with open_client(allow_private=True, max_bytes=1000, step_seconds=5) as client:
        answer = await client.get(f"{server}/plain")
    assert answer.headers["X-Host"] == server.removeprefix("http://")


async def test_private_address_is_refused(server: str) -> None:
    assert await refusal(f"{server}/plain", private=False) == "address_inside"


async def test_only_the_given_origin_is_called(server: str) -> None:
    assert await get(f"{server}/plain", only=server) == b"x" * 1000
    assert await refusal(f"{server}/plain", only="http://localhost:1") == "address_refused"
    assert await refusal(f"{server}/plain", only=server.replace("http:", "https:")) == "address_refused"


async def test_redirect_is_not_followed(server: str) -> None:
    async with open_client(allow_private=True, max_bytes=1000, step_seconds=5) as client:
        answer = await client.get(f"{server}/away")
    assert answer.status_code == 302
