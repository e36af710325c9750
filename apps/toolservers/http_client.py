"""HTTP client for outside servers that reaches one host, resolved once a request and then called by its address.

Private addresses are refused unless the operator names host and port in `SILAS_EGRESS_PRIVATE`; only these may be
called without TLS. No redirect and nothing a server says leads to another host. At most `most` bytes of an answer are
read, and a compressed answer is refused: a small one may expand to a very large page.
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
from kernel.language import gettext

MOST_BYTES = 2_000_000
_STEP_SECONDS = 30.0

# Sentences about addresses that cannot be called, for messages of the callers.
ADDRESS_ERRORS = {
    "address_inside": "This address is in a private network.",
    "address_refused": "This address doesn't lead to a public server.",
    "no_such_host": "There is no server with this name.",
}


class RequestRefused(httpx2.TransportError):
    """A request that is not made, or an answer that is not read. `code`: address_refused, address_inside, no_such_host,
    answer_too_large, answer_packed."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def address_problem(url: str) -> str:
    """Return what is wrong with an address that was typed, or ""."""
    if is_allowed_private(url) or is_public_url(url, schemes=("https",)):
        return ""
    if host_of(url, schemes=("http",)):
        return gettext("The address must start with https.")
    return gettext("This isn't a public address, and the operator doesn't allow it as a private one.")


def is_allowed_private(url: str) -> bool:
    """True when the operator allows this host and port of the private network."""
    host = host_of(url, schemes=("http", "https"))
    return bool(host) and f"{host}:{_port(url)}" in settings.EGRESS_PRIVATE


def _port(url: str) -> int:
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)


def client_for(url: str, headers: dict[str, str], *, most: int = MOST_BYTES) -> httpx2.AsyncClient:
    """Return a client that reaches the host of `url` and no other. Raises `SilasError("address_refused")`."""
    if address_problem(url):
        raise SilasError("address_refused", address_problem(url), status=422)
    transport = _SingleHostTransport(url, most)
    headers = {"Accept-Encoding": "identity", **headers}
    return httpx2.AsyncClient(
        transport=transport, headers=headers, timeout=_STEP_SECONDS, follow_redirects=False, trust_env=False
    )


class _SingleHostTransport(httpx2.AsyncBaseTransport):
    """Resolves the name, refuses private addresses, and calls the address that was checked."""

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
    """Ends an answer with a refusal when it grows too large."""

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
