"""What a real socket of a real web process does with visitors who do not keep to the protocol."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, unix_connect
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame as WireFrame
from websockets.frames import Opcode

from tests.faults.house import KEY, Web
from tests.faults.visitor import start_session

KIB = 1024


@dataclass
class Line:
    """How a socket ended, and what was heard until then."""

    code: int = 0
    lasted: float = 0.0
    heard: list[dict[str, Any]] = field(default_factory=list)


@pytest.fixture(scope="module")
def lines(web: Web) -> dict[str, Line]:
    return asyncio.run(_lines(web))


async def _lines(web: Web) -> dict[str, Line]:
    """All at once: the slowest takes the five seconds that somebody silent is given."""
    auth = {"type": "auth", "token": (await asyncio.to_thread(start_session, web))["token"]}
    hello = json.dumps({"type": "message", "text": "Hello", "client_id": "h"})
    told = {
        "silent": _line(web),
        "forged": _line(web, json.dumps({"type": "auth", "token": "forged"})),
        "unauthenticated": _line(web, hello),
        "unknown deployment": _line(web, key="nobody-here"),
        "no key at all": _line(web, key="%00"),
        "foreign origin": _line(web, origin="https://evil.example"),
        "17 KiB": _line(web, json.dumps(auth), json.dumps({"type": "message", "text": "x" * 17 * KIB})),
        "17 KiB before auth": _line(web, "x" * 17 * KIB),
        "2 MiB": _line(web, "x" * 2048 * KIB),
        "not utf-8": _line(web, json.dumps(auth), WireFrame(Opcode.TEXT, b"\xff\xfe\xff")),
        "bad then good": _line(web, json.dumps(auth), "{", b"\x00\xff", "[" * 16_000, '{"type": []}', hello, seconds=3),
    }
    return dict(zip(told, await asyncio.gather(*told.values()), strict=True))


async def _line(
    web: Web, *said: str | bytes | WireFrame, key: str = KEY, origin: str | None = None, seconds: float = 9
) -> Line:
    line, started = Line(), time.monotonic()
    headers = {"Origin": origin} if origin else {}
    async with unix_connect(str(web.path), f"ws://localhost/ws/widget/{key}/", additional_headers=headers) as socket:
        try:
            async with asyncio.timeout(seconds):
                for one in said:
                    await _send(socket, one)
                async for text in socket:
                    line.heard.append(json.loads(text))
        except (ConnectionClosed, TimeoutError):
            pass
        line.code, line.lasted = socket.close_code or 0, time.monotonic() - started
    return line


async def _send(socket: ClientConnection, said: str | bytes | WireFrame) -> None:
    if isinstance(said, WireFrame):
        socket.protocol.send_frame(said)
        said = b""
    await socket.send(said)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("silent", 4001),
        ("forged", 4001),
        ("unauthenticated", 4001),
        ("unknown deployment", 4003),
        ("no key at all", 4003),
        ("foreign origin", 4003),
        ("17 KiB", 1009),
        ("17 KiB before auth", 1009),
        ("2 MiB", 1009),
    ],
)
def test_socket_is_closed_with_its_code(lines: dict[str, Line], name: str, code: int) -> None:
    assert lines[name].code == code


def test_text_that_is_not_utf8_ends_its_socket(lines: dict[str, Line]) -> None:
    """Said, or simply dropped: it depends on how the bytes came in. No browser sends such."""
    assert lines["not utf-8"].code in (1007, 1006)


def test_silent_visitor_is_given_five_seconds(lines: dict[str, Line]) -> None:
    assert 4.5 < lines["silent"].lasted < 8


def test_bad_frames_are_answered_and_the_next_message_is_taken(lines: dict[str, Line]) -> None:
    line = lines["bad then good"]
    codes = [frame["code"] for frame in line.heard if frame["type"] == "error"]
    acknowledged = [frame["client_id"] for frame in line.heard if frame["type"] == "ack"]
    assert codes == ["not_json", "not_json", "not_json", "unknown_type"]
    assert acknowledged == ["h"]


def test_web_process_counts_none_of_them_afterwards(lines: dict[str, Line], web: Web) -> None:
    time.sleep(1)
    assert json.loads(web.ask("GET", "/health").body)["connections"] == 0
