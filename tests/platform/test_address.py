"""The address of a run is answered by its own web process, by nothing, or by another program."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from silas_platform.up.address import Address, free_address, is_ready
from silas_platform.up.environment import StartRefused
from tests.ports import free_port


class _Answering(BaseHTTPRequestHandler):
    status, told = 200, b""

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(self.told)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Address]:
    with HTTPServer(("127.0.0.1", 0), _Answering) as serving:
        thread = threading.Thread(target=serving.serve_forever, args=(0.01,))
        thread.start()
        yield Address("127.0.0.1", serving.server_port)
        serving.shutdown()
        thread.join()


@pytest.mark.parametrize(("status", "ready"), [(200, True), (503, False)])
def test_own_process_is_ready_when_it_says_so(
    server: Address, monkeypatch: pytest.MonkeyPatch, status: int, ready: bool
) -> None:
    monkeypatch.setattr(_Answering, "status", status)
    monkeypatch.setattr(_Answering, "told", json.dumps({"status": "ok", "run": "mine"}).encode())
    assert is_ready(server, run="mine", allowed_hosts=[]) is ready


@pytest.mark.parametrize("told", [b"", b"hello", b"[]", b'{"status": "ok"}', b'{"status": "ok", "run": "another"}'])
def test_stranger_that_answers_is_never_ready(server: Address, monkeypatch: pytest.MonkeyPatch, told: bytes) -> None:
    monkeypatch.setattr(_Answering, "told", told)
    with pytest.raises(StartRefused, match="another program answers"):
        is_ready(server, run="mine", allowed_hosts=["chat.example.com"])


def test_nobody_is_not_ready_and_their_address_is_free() -> None:
    port = free_port()
    assert not is_ready(Address("127.0.0.1", port), run="mine", allowed_hosts=[])
    assert free_address({"PORT": str(port)}) == Address("127.0.0.1", port)


def test_address_at_which_something_answers_is_not_free(server: Address) -> None:
    with pytest.raises(StartRefused, match="another program answers"):
        free_address({"PORT": str(server.port)})
