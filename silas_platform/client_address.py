"""Determine the client's address behind our own proxies.

Each proxy appends the address that it received the request from to `X-Forwarded-For`; entries further left can be
forged by the client. So the address is the one that the outermost of `SILAS_TRUSTED_PROXIES` proxies saw: that many
entries from the right. Limits on logins, conversations and messages count by it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Any

_HEADER = b"x-forwarded-for"


def with_client_address(application: Any, *, trusted: int) -> Any:
    """Wrap the ASGI application and set `scope["client"]`. With `trusted` 0 the header is ignored."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if trusted and scope["type"] in ("http", "websocket"):
            headers = [value for name, value in scope["headers"] if name.lower() == _HEADER]
            if address := client_address(headers, trusted=trusted):
                scope = {**scope, "client": (address, 0)}
        await application(scope, receive, send)

    return answer


def client_address(headers: Iterable[bytes], *, trusted: int) -> str:
    """Address that the outermost trusted proxy saw.

    "" when the header has too few entries or no valid address there: the connection's own address applies then.
    """
    entries = b",".join(headers).decode("latin-1").split(",")
    # Counted from the right: what stands further left may be the client's own forgery.
    return _address(entries[-trusted].strip()) if len(entries) >= trusted else ""


def _address(entry: str) -> str:
    """Parse an entry, with or without a port; "" when it is no address."""
    host = entry.partition("]")[0].removeprefix("[") if entry.startswith("[") else entry
    for text in (host, host.rpartition(":")[0]):
        try:
            return str(ipaddress.ip_address(text))
        except ValueError:
            continue
    return ""
