"""Fetch one page from the public internet, or send one request to the interface of a service.

Redirects are returned, not followed: a caller that follows one calls `fetch` again. At most `max_bytes` are read or
unpacked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

import httpx2

from kernel.http.addresses import host_of, is_public_url
from kernel.http.client import open_client
from kernel.http.resolver import RequestRefused

SCHEMES = ("https", "http")
_STEP_SECONDS = 8.0
_HEADERS = {"User-Agent": "SilasReader/1 (+robots.txt is respected)", "Accept": "text/html, text/plain;q=0.8"}
_CODES = {"answer_too_large": "too_large", "answer_packed": "no_answer"}


class FetchFailed(Exception):
    """`code`: address_refused, no_such_host, address_inside, too_slow, too_large, no_answer."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True)
class Response:
    """`kind` is the media type in lower case, `charset` the header's, `location` the target of a redirect.

    `headers` have lower-case names.
    """

    url: str
    status: int
    kind: str
    charset: str
    location: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


def fetch(url: str, *, max_bytes: int, seconds: float, allow_private: bool = False) -> Response:
    """Send one GET. `allow_private` permits private addresses. Raises `FetchFailed`."""
    if not (bool(host_of(url, schemes=SCHEMES)) if allow_private else is_public_url(url, schemes=SCHEMES)):
        raise FetchFailed("address_refused")
    return send("GET", url, headers=_HEADERS, max_bytes=max_bytes, seconds=seconds, allow_private=allow_private)


def send(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    max_bytes: int,
    seconds: float,
    allow_private: bool,
    body: bytes | None = None,
) -> Response:
    """Send one request to a URL whose scheme and host the caller has checked; the address that the host resolves to is
    checked here. Raises `FetchFailed`."""
    try:
        return asyncio.run(asyncio.wait_for(_send(method, url, headers, body, max_bytes, allow_private), seconds))
    except RequestRefused as refused:
        raise FetchFailed(_CODES.get(refused.code, refused.code)) from None
    except (TimeoutError, httpx2.TimeoutException):
        raise FetchFailed("too_slow") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError):
        raise FetchFailed("no_answer") from None


async def _send(
    method: str, url: str, headers: Mapping[str, str], body: bytes | None, max_bytes: int, allow_private: bool
) -> Response:
    client = open_client(
        allow_private=allow_private,
        max_bytes=max_bytes,
        step_seconds=_STEP_SECONDS,
        headers=headers,
        accept_gzip=True,
    )
    async with client:
        answer = await client.request(method, url, content=body)
    kind, _, rest = answer.headers.get("content-type", "").partition(";")
    _, _, charset = rest.partition("charset=")
    return Response(
        url=url,
        status=int(answer.status_code),
        kind=kind.strip().lower(),
        charset=charset.split(";")[0].strip(" \"'").lower()[:40],
        location=answer.headers.get("location", ""),
        body=answer.content,
        headers=dict(answer.headers),
    )
