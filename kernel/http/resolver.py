"""Resolve a host name once and return the URL with the address to call, so that DNS cannot answer differently later.

Private addresses are refused unless the operator allows them, cloud metadata addresses always.
"""

from __future__ import annotations

import socket
from urllib.parse import SplitResult

import httpx2

from kernel.http.addresses import is_metadata_address, is_public_address


class RequestRefused(httpx2.TransportError):
    """A request that is not made, or an answer that is not read. `code`: address_refused, address_inside, no_such_host,
    answer_too_large, answer_packed. `is_permanent`: a later try would fail too."""

    def __init__(self, code: str, *, is_permanent: bool = False) -> None:
        super().__init__(code)
        self.code = code
        self.is_permanent = is_permanent


def resolve_url(parts: SplitResult, *, allow_private: bool) -> str:
    """Replace the URL's host by the address that was checked.

    Raises `RequestRefused`: `no_such_host`, or `address_inside` for a private or metadata address.
    """
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        infos = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise RequestRefused("no_such_host") from None
    addresses = [str(info[4][0]) for info in infos]
    # All addresses of the answer, because the connection could go to any of them.
    if any(map(is_metadata_address, addresses)) or not (allow_private or all(map(is_public_address, addresses))):
        raise RequestRefused("address_inside", is_permanent=True)
    host = f"[{addresses[0]}]" if ":" in addresses[0] else addresses[0]
    return parts._replace(netloc=f"{host}:{port}").geturl()
