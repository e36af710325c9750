"""How is an outside server asked over HTTP? One host, looked up once a request and then called by its address.

Private addresses are refused unless the operator names host and port in `SILAS_EGRESS_PRIVATE`; only these may be
asked without TLS. Nothing leads to another host, neither a redirect nor what a server says of itself. Of one answer no
more than `most` bytes are read, and a packed one is refused: a small letter may hold a very large page.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import httpx2
from django.conf import settings

from kernel.errors import SilasError
from kernel.http.addresses import host_of, is_public_url
from kernel.http.resolver import AddressRefused, resolve_url

MOST_BYTES = 2_000_000
_STEP_SECONDS = 30.0


# Why an address leads nowhere, told by whoever asked there.
ADDRESS_ERRORS = {
    "address_inside": "This address leads into a private network.",
    "address_refused": "This address leads to no server outside.",
    "no_such_host": "Nobody knows a server of this name.",
}


class RequestRefused(httpx2.TransportError):
    """`code`: address_refused, address_inside, no_such_host, answer_too_large, answer_packed."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def address_problem(url: str) -> str:
    """What is wrong with an address that somebody typed, or empty."""
    if is_allowed_private(url) or is_public_url(url, schemes=("https",)):
        return ""
    if host_of(url, schemes=("http",)):
        return "The address has to begin with https."
    return "This is no address of a server outside, and not one that the operator allows inside."


def is_allowed_private(url: str) -> bool:
    """Whether the operator allows this host and port of the house's own network."""
    host = host_of(url, schemes=("http", "https"))
    return bool(host) and f"{host}:{_port(url)}" in settings.EGRESS_PRIVATE


def _port(url: str) -> int:
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)


def client_for(url: str, headers: dict[str, str], *, most: int = MOST_BYTES) -> httpx2.AsyncClient:
    """A client that reaches the host of `url` and nobody else. Raises `SilasError("address_refused")`."""
    if address_problem(url):
        raise SilasError("address_refused", address_problem(url), status=422)
    transport = _SingleHostTransport(url, most)
    headers = {"Accept-Encoding": "identity", **headers}
    return httpx2.AsyncClient(
        transport=transport, headers=headers, timeout=_STEP_SECONDS, follow_redirects=False, trust_env=False
    )


class _SingleHostTransport(httpx2.AsyncBaseTransport):
    """Looks the name up, refuses what is inside, and calls the address that was looked at."""

    def __init__(self, url: str, most: int) -> None:
        self.home, self.private, self.most = _origin(httpx2.URL(url)), is_allowed_private(url), most
        self.inner = httpx2.AsyncHTTPTransport(trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if _origin(request.url) != self.home:
            raise RequestRefused("address_refused")
        parts = urlsplit(str(request.url))
        try:
            place = await asyncio.to_thread(resolve_url, parts._replace(fragment=""), allow_private=self.private)
        except AddressRefused as no:
            raise RequestRefused(no.code) from None
        called = httpx2.Request(
            request.method,
            place,
            headers=request.headers,
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": parts.hostname},
        )
        response = await self.inner.handle_async_request(called)
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            raise RequestRefused("answer_packed")
        response.stream = _BoundedStream(response.stream, self.most)
        return response

    async def aclose(self) -> None:
        await self.inner.aclose()


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return (url.scheme, url.host, url.port)


class _BoundedStream(httpx2.AsyncByteStream):
    """An answer that ends, with a refusal, where it grows too large."""

    def __init__(self, inner: Any, most: int) -> None:
        self.inner, self.left = inner, most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self.inner:
            self.left -= len(piece)
            if self.left < 0:
                raise RequestRefused("answer_too_large")
            yield piece

    async def aclose(self) -> None:
        await self.inner.aclose()
