"""Connections that do what no browser does, against Daphne with the platform's wire and a bare application."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests import nursery
from tests.ports import free_port

PATIENCE = 30
MOST_UNANSWERED = 20
FRAMES = 50
ENV = {"SILAS_SOCKET_FRAMES": str(FRAMES), "SILAS_SOCKET_HANDSHAKES": "20", "SILAS_TRUSTED_PROXIES": "1"}


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Of a web process that believes the proxy before it."""
    at = free_port()
    argv = [sys.executable, "-m", "daphne", "-b", "127.0.0.1", "-p", str(at), "-v", "0"]
    log = tmp_path_factory.mktemp("wire") / "log"
    with (
        log.open("wb") as said,
        nursery.start(
            [*argv, "tests.platform.connection_limits_application:application"],
            env={**os.environ, **ENV},
            stderr=said,
            stdout=said,
        ) as process,
    ):
        try:
            _await_answer(at, process, log)
            yield at
        finally:
            process.terminate()


def _await_answer(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    give_up = time.monotonic() + PATIENCE
    while time.monotonic() < give_up and process.poll() is None:
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        time.sleep(0.05)
    raise AssertionError(log.read_text())


def _socket(port: int, address: str) -> ClientConnection:
    url, proxied = f"ws://127.0.0.1:{port}/", {"X-Forwarded-For": address}
    return connect(
        url, additional_headers=proxied, legacy=True, open_timeout=PATIENCE, max_size=None, ping_interval=None
    )


def _assert_echoes(line: ClientConnection, text: str = "hello") -> None:
    line.send(text)
    assert line.recv(timeout=PATIENCE) == text


def _close_code(line: ClientConnection) -> int:
    try:
        while True:
            line.recv(timeout=PATIENCE)
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd else 1006


def _frame(opcode: int, payload: bytes = b"", *, final: bool = True) -> bytes:
    return struct.pack("!BB4s", (0x80 if final else 0) | opcode, 0x80 | len(payload), bytes(4)) + payload


@pytest.mark.parametrize(
    ("address", "flood"),
    [
        ("203.0.113.1", _frame(1, b"x") * 3000),
        ("203.0.113.2", _frame(2, b"x") * 3000),
        ("203.0.113.3", _frame(9) * 3000),
        ("203.0.113.4", _frame(10) * 3000),
        ("203.0.113.5", _frame(1, final=False) + _frame(0, final=False) * 3000),
    ],
    ids=["text", "binary", "pings", "pongs", "pieces"],
)
def test_flood_of_any_kind_of_frame_is_closed_and_its_address_waits(port: int, address: str, flood: bytes) -> None:
    line = _socket(port, address)
    with suppress(OSError):
        line.socket.sendall(flood)
    assert _close_code(line) == 4008
    with pytest.raises(InvalidStatus) as refused:
        _socket(port, address)
    assert refused.value.response.status_code == 429
    with _socket(port, "203.0.113.99") as other:
        _assert_echoes(other)


def test_socket_that_was_not_answered_yet_may_say_little(port: int) -> None:
    with _socket(port, "203.0.113.16") as line:
        line.socket.sendall(_frame(9) * (MOST_UNANSWERED + 1))
        assert _close_code(line) == 4008


def test_flood_is_not_read_to_its_end(port: int) -> None:
    line = _socket(port, "203.0.113.6")
    line.socket.settimeout(5)
    sent = 0
    with suppress(OSError):
        while sent < 100_000_000:
            line.socket.sendall(_frame(1, b"x" * 100) * 1000)
            sent += 106_000
    assert sent < 20_000_000


def test_socket_that_its_application_closes_for_its_frames_waits_as_well(port: int) -> None:
    line = _socket(port, "203.0.113.7")
    line.send("close")
    assert _close_code(line) == 4008
    with pytest.raises(InvalidStatus):
        _socket(port, "203.0.113.7")


def test_message_that_is_too_large_closes_before_it_is_whole(port: int) -> None:
    line = _socket(port, "203.0.113.8")
    line.socket.sendall(struct.pack("!BBH4s", 0x81, 0x80 | 126, 16 * 1024 + 1, bytes(4)))
    assert _close_code(line) == 1009


def test_steady_talk_stays_open(port: int) -> None:
    with _socket(port, "203.0.113.9") as line:
        for number in range(FRAMES - 5):
            _assert_echoes(line, str(number))


def test_frames_wait_for_a_slow_application_and_none_is_lost(port: int) -> None:
    with _socket(port, "203.0.113.10") as line:
        _assert_echoes(line)
        line.send("sleep")
        for number in range(FRAMES - 5):
            line.send(str(number))
        heard = [line.recv(timeout=PATIENCE) for _ in range(FRAMES - 5)]
    assert heard == [str(number) for number in range(FRAMES - 5)]


def test_storm_of_reconnects_from_one_address_is_refused_and_others_come_in(port: int) -> None:
    def reconnect(_: int) -> int:
        try:
            _socket(port, "203.0.113.11").socket.close()
        except InvalidStatus as no:
            return no.response.status_code
        return 101

    with ThreadPoolExecutor(60) as storm:
        refused = [status for status in storm.map(reconnect, range(60)) if status != 101]
    assert len(refused) >= 20
    assert set(refused) == {429}
    with _socket(port, "203.0.113.12") as other:
        _assert_echoes(other)


def _ended(port: int, address: str, said: str, times: int) -> list[int]:
    """What became of so many sockets, one after the other, that said this."""
    found = []
    for _ in range(times):
        try:
            with _socket(port, address) as line:
                line.send(said)
                if said == "hello":
                    line.recv(timeout=PATIENCE)
                    found.append(101)
                else:
                    found.append(_close_code(line))
        except InvalidStatus as no:
            found.append(no.response.status_code)
    return found


def test_address_whose_sockets_are_never_answered_has_to_wait(port: int) -> None:
    assert _ended(port, "203.0.113.13", "4001", 3) == [4001, 4001, 429]


@pytest.mark.parametrize(
    ("address", "said", "becomes"), [("203.0.113.14", "hello", 101), ("203.0.113.15", "1013", 1013)]
)
def test_sockets_that_are_answered_or_told_to_come_back_are_not_counted(
    port: int, address: str, said: str, becomes: int
) -> None:
    assert _ended(port, address, said, 10) == [becomes] * 10


def test_proxy_that_says_nobody_is_never_made_to_wait(port: int) -> None:
    """Everybody would be behind it."""
    with connect(f"ws://127.0.0.1:{port}/", open_timeout=PATIENCE, ping_interval=None) as line:
        with suppress(OSError):
            line.socket.sendall(_frame(9) * 3000)
        assert _close_code(line) == 4008
    with connect(f"ws://127.0.0.1:{port}/", open_timeout=PATIENCE, ping_interval=None) as line:
        _assert_echoes(line)


@pytest.mark.slow
def test_request_whose_head_trickles_is_dropped(port: int) -> None:
    begun = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as line, suppress(OSError):
        line.sendall(b"GET / HTTP/1.1\r\n")
        while time.monotonic() - begun < 40:
            line.sendall(b"X")
            time.sleep(0.2)
    assert time.monotonic() - begun < 25


@pytest.mark.slow
def test_socket_that_does_not_read_is_dropped(port: int) -> None:
    line = _socket(port, "203.0.113.13")
    line.send("pour")
    begun, gone = time.monotonic(), False
    while not gone and time.monotonic() - begun < 60:
        time.sleep(0.5)
        try:
            line.socket.sendall(_frame(10))
        except OSError:
            gone = True
    assert gone
    assert time.monotonic() - begun < 50
