"""The address that a request is counted under cannot be forged with the header."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from silas_platform.client_address import client_address, with_client_address

FORGED, VISITOR, EDGE = "198.51.100.66", "203.0.113.9", "192.0.2.1"


@pytest.mark.parametrize(
    ("said", "trusted", "expected"),
    [
        ([f"{VISITOR}"], 1, VISITOR),
        ([f"{FORGED}, {VISITOR}"], 1, VISITOR),
        ([f"{FORGED}, {FORGED}, {VISITOR}, {EDGE}"], 2, VISITOR),
        ([FORGED, VISITOR], 1, VISITOR),
        ([f"{FORGED},{VISITOR}", EDGE], 2, VISITOR),
        ([VISITOR], 2, ""),
        ([], 1, ""),
        ([""], 1, ""),
        ([f"{FORGED}, unknown"], 1, ""),
        ([f"{FORGED}, '; touch pwned"], 1, ""),
        ([f"{FORGED}, {VISITOR}:4711"], 1, VISITOR),
        (["2001:db8::1"], 1, "2001:db8::1"),
        (["[2001:db8::1]:4711"], 1, "2001:db8::1"),
        (["\xff\xfe, " + VISITOR], 1, VISITOR),
    ],
)
def test_address_is_the_one_that_the_outermost_proxy_of_ours_saw(said: list[str], trusted: int, expected: str) -> None:
    assert client_address([entry.encode("latin-1") for entry in said], trusted=trusted) == expected


async def client_seen_by_application(*, trusted: int, header: str | None, kind: str = "http") -> Any:
    seen: list[Any] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope.get("client"))

    headers = [(b"X-Forwarded-For", header.encode())] if header is not None else []
    scope = {"type": kind, "client": (EDGE, 5), "headers": headers}
    await with_client_address(application, trusted=trusted)(scope, None, None)
    return seen[0]


async def test_header_is_nobodys_word_where_no_proxy_is_ours() -> None:
    assert await client_seen_by_application(trusted=0, header=FORGED) == (EDGE, 5)


@pytest.mark.parametrize("kind", ["http", "websocket"])
async def test_pages_and_sockets_hear_the_visitors_address(kind: str) -> None:
    assert await client_seen_by_application(trusted=1, header=f"{FORGED}, {VISITOR}", kind=kind) == (VISITOR, 0)


@pytest.mark.parametrize("header", [None, "nobody"])
async def test_request_that_no_proxy_marked_is_counted_as_whoever_is_connected(header: str | None) -> None:
    assert await client_seen_by_application(trusted=1, header=header) == (EDGE, 5)


def test_image_leaves_no_word_to_the_server_that_takes_the_leftmost_address() -> None:
    said = (Path(__file__).parents[2] / "Dockerfile").read_text()
    assert "--proxy-headers" not in said and "SILAS_TRUSTED_PROXIES=1" in said
