"""Fetch one page from the public internet, from a host name that is resolved once.

A name may resolve to a private address, or be changed to one later, so every address is checked and the checked one is
called. Redirects are returned, not followed: a caller that follows one calls `fetch` again. At most `max_bytes` are
read or decompressed; gzip is accepted once.
"""

from __future__ import annotations

import asyncio
import zlib
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

import httpx2

from kernel.http.addresses import host_of, is_public_url
from kernel.http.resolver import AddressRefused, resolve_url

SCHEMES = ("https", "http")
_STEP_SECONDS = 8.0
_AGENT = "SilasReader/1 (+robots.txt is respected)"


class FetchFailed(Exception):
    """`code`: address_refused, no_such_host, address_inside, too_slow, too_large, no_answer."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True)
class Response:
    """`kind` is the media type in lower case, `charset` the header's, `location` the target of a redirect."""

    url: str
    status: int
    kind: str
    charset: str
    location: str
    body: bytes


def fetch(url: str, *, max_bytes: int, seconds: float, allow_private: bool = False) -> Response:
    """Send one GET. `allow_private` permits private addresses. Raises `FetchFailed`."""
    if not (bool(host_of(url, schemes=SCHEMES)) if allow_private else is_public_url(url, schemes=SCHEMES)):
        raise FetchFailed("address_refused")
    parts = urlsplit(url)
    place = _resolve(parts, private=allow_private)
    try:
        return asyncio.run(asyncio.wait_for(_get(url, parts, place, max_bytes), seconds))
    except (TimeoutError, httpx2.TimeoutException):
        raise FetchFailed("too_slow") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError, zlib.error):
        raise FetchFailed("no_answer") from None


async def _get(url: str, parts: SplitResult, place: str, most: int) -> Response:
    headers = {"Host": parts.netloc, "User-Agent": _AGENT, "Accept": "text/html, text/plain;q=0.8"}
    client = httpx2.AsyncClient(timeout=_STEP_SECONDS, follow_redirects=False, trust_env=False)
    headers, named = {**headers, "Accept-Encoding": "gzip"}, {"sni_hostname": parts.hostname}
    async with client, client.stream("GET", place, headers=headers, extensions=named) as answer:
        content_type = answer.headers.get("content-type", "")
        kind, _, rest = content_type.partition(";")
        _, _, charset = rest.partition("charset=")
        return Response(
            url=url,
            status=int(answer.status_code),
            kind=kind.strip().lower(),
            charset=charset.split(";")[0].strip(" \"'").lower()[:40],
            location=answer.headers.get("location", ""),
            body=await _read_bounded(answer, most),
        )


async def _read_bounded(answer: httpx2.Response, most: int) -> bytes:
    """Decompress here, chunk by chunk: a small response may expand to a very large page, and the HTTP library would
    decompress as often as a header says."""
    packed = answer.headers.get("content-encoding", "identity").strip().lower()
    if packed not in ("identity", "gzip"):
        raise FetchFailed("no_answer")
    unpacker = zlib.decompressobj(wbits=31) if packed == "gzip" else None
    body = bytearray()
    async for piece in answer.aiter_raw(65_536):
        body += unpacker.decompress(piece, most + 1 - len(body)) if unpacker else piece
        if len(body) > most:
            raise FetchFailed("too_large")
    return bytes(body)


def _resolve(parts: SplitResult, *, private: bool) -> str:
    try:
        return resolve_url(parts._replace(fragment=""), allow_private=private)
    except AddressRefused as no:
        raise FetchFailed(no.code) from None
