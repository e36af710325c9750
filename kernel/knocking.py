"""Look a name up once and return the URL with the address to call, so that the name cannot stand for another one a
moment later. An address inside is refused unless the operator allows it, a cloud's metadata always (`kernel.outside`).
"""

from __future__ import annotations

import socket
from urllib.parse import SplitResult

from kernel.outside import is_metadata, is_outside


class NoWayThere(Exception):
    """`for_good`: no other try would go better."""

    def __init__(self, code: str, *, for_good: bool = False) -> None:
        super().__init__(code)
        self.code = code
        self.for_good = for_good


def place_of(parts: SplitResult, *, inside_too: bool) -> str:
    """The URL with the address that was looked at in place of the name. Raises `NoWayThere`: `no_such_host`,
    `address_inside` for the house's database, its cache, the machine's own metadata."""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        found = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise NoWayThere("no_such_host") from None
    addresses = [str(place[4][0]) for place in found]
    if any(map(is_metadata, addresses)) or not (inside_too or all(map(is_outside, addresses))):
        raise NoWayThere("address_inside", for_good=True)
    host = f"[{addresses[0]}]" if ":" in addresses[0] else addresses[0]
    return parts._replace(netloc=f"{host}:{port}").geturl()
