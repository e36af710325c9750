"""HTTP client that calls the address which was checked, and reads a bounded answer.

Each request's host is resolved once and called by that address, so that DNS cannot answer differently in between. No
redirect is followed, no proxy of the environment is used, and a compressed answer is refused unless the caller takes
gzip, which is unpacked once, here, piece by piece: a small answer may expand to a very large one.
"""

from __future__ import annotations

import asyncio
import functools
import ssl
import zlib
from collections.abc import AsyncIterator, Mapping
from urllib.parse import urlsplit

import httpx2

from kernel.http.resolver import RequestRefused, resolve_url

Origin = tuple[str, str, int | None]


def open_client(
    *,
    allow_private: bool,
    max_bytes: int,
    step_seconds: float,
    headers: Mapping[str, str] | None = None,
    only: str = "",
    accept_gzip: bool = False,
) -> httpx2.AsyncClient:
    """A client whose requests raise `RequestRefused` or another `httpx2.HTTPError`.

    `only` is a URL whose scheme, host and port alone may be called. `step_seconds` bounds each step of a request: the
    caller bounds the whole.
    """
    return httpx2.AsyncClient(
        transport=_CheckedTransport(allow_private, max_bytes, accept_gzip, _origin(httpx2.URL(only)) if only else None),
        headers={"Accept-Encoding": "gzip" if accept_gzip else "identity", **(headers or {})},
        timeout=step_seconds,
        # A redirect leads to another host, which was not checked.
        follow_redirects=False,
        # A proxy of the environment would resolve the host again, and the checked address would count for nothing.
        trust_env=False,
    )


class _CheckedTransport(httpx2.AsyncBaseTransport):
    def __init__(self, allow_private: bool, max_bytes: int, accept_gzip: bool, only: Origin | None) -> None:
        self._allow_private, self._only = allow_private, only
        self._max_bytes, self._accept_gzip = max_bytes, accept_gzip
        self._inner = httpx2.AsyncHTTPTransport(verify=_ssl_context(), trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self._only is not None and _origin(request.url) != self._only:
            raise RequestRefused("address_refused")
        parts = urlsplit(str(request.url))
        address = await asyncio.to_thread(resolve_url, parts._replace(fragment=""), allow_private=self._allow_private)
        response = await self._inner.handle_async_request(
            httpx2.Request(
                request.method,
                address,
                headers=request.headers,
                stream=request.stream,
                # The certificate is still that of the name, though the address is called.
                extensions={**request.extensions, "sni_hostname": parts.hostname},
            )
        )
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        # Taken out, because the client would unpack it without a bound.
        encoding = response.headers.pop("content-encoding", "identity").strip().lower()
        response.stream = _BoundedStream(response.stream, encoding, self._max_bytes, self._accept_gzip)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    """Ends an answer with a refusal when it is packed in another way than allowed, or grows too large."""

    def __init__(self, inner: httpx2.AsyncByteStream, encoding: str, max_bytes: int, accept_gzip: bool) -> None:
        self._inner, self._encoding, self._left, self._accept_gzip = inner, encoding, max_bytes, accept_gzip

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._encoding not in (("identity", "gzip") if self._accept_gzip else ("identity",)):
            raise RequestRefused("answer_packed")
        unpacker = zlib.decompressobj(wbits=31) if self._encoding == "gzip" else None
        async for piece in self._inner:
            unpacked = _unpack(unpacker, piece, self._left + 1) if unpacker else piece
            self._left -= len(unpacked)
            if self._left < 0:
                raise RequestRefused("answer_too_large")
            yield unpacked
            if unpacker and unpacker.eof:
                return  # what follows would be kept uncounted in `unused_data`

    async def aclose(self) -> None:
        await self._inner.aclose()


def _unpack(unpacker: zlib._Decompress, piece: bytes, most: int) -> bytes:
    try:
        # One byte more than is left at most: enough to see that it is too large, however far it expands (zip bomb).
        return unpacker.decompress(piece, most)
    except zlib.error:
        raise RequestRefused("answer_packed") from None


@functools.cache
def _ssl_context() -> ssl.SSLContext:
    """Cached, because reading the certificate store takes 25 ms, which is most of what a short request costs."""
    return httpx2.create_ssl_context(trust_env=False)


def _origin(url: httpx2.URL) -> Origin:
    return (url.scheme, url.host, url.port)
