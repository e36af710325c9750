"""From which address does a request come, when proxies of ours stand before us?

Each proxy appends to `X-Forwarded-For` whom it heard from; what stands further left, whoever wrote to us may have
written. So the address is the one that the outermost of our `SILAS_TRUSTED_PROXIES` saw: so many from the right, and
never the leftmost for being there. Limits on logins, conversations and messages count by it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Any

_HEADER = b"x-forwarded-for"


def behind_proxies(application: Any, *, trusted: int) -> Any:
    """The ASGI application, told who asks. With `trusted` 0 nobody's word is taken: the address is the connection's."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if trusted and scope["type"] in ("http", "websocket"):
            said = [value for name, value in scope["headers"] if name.lower() == _HEADER]
            if address := client_of(said, trusted=trusted):
                scope = {**scope, "client": (address, 0)}
        await application(scope, receive, send)

    return answer


def client_of(headers: Iterable[bytes], *, trusted: int) -> str:
    """Whom the outermost trusted proxy heard from; "" where fewer than all of them have written, or no address: then
    it is whoever is connected."""
    entries = b",".join(headers).decode("latin-1").split(",")
    return _address(entries[-trusted].strip()) if len(entries) >= trusted else ""


def _address(entry: str) -> str:
    """Some proxies write the port as well."""
    host = entry.partition("]")[0].removeprefix("[") if entry.startswith("[") else entry
    for text in (host, host.rpartition(":")[0]):
        try:
            return str(ipaddress.ip_address(text))
        except ValueError:
            continue
    return ""
