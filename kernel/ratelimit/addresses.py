"""What an internet address is counted as."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from kernel.canonical import sha256_hex

if TYPE_CHECKING:
    from django.http import HttpRequest
    from rest_framework.request import Request


def address_of(request: HttpRequest | Request) -> str:
    """The client's address, as `silas_platform.client_address` determined it behind our own proxies."""
    return str(request.META.get("REMOTE_ADDR", ""))


def is_own_machine(address: str) -> bool:
    """Whether this is the loopback address, or none: a developer, a test, or a proxy that does not forward addresses.

    Behind such a proxy it is everyone's, so what protects capacity does not count it. Logins are counted all the same.
    """
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return not address
    return (getattr(known, "ipv4_mapped", None) or known).is_loopback


def address_key(address: str) -> str:
    """A hash of the address, and of IPv6 only of the network, because one household has them all."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return sha256_hex(address)[:32]
    # A dual-stack server sees an IPv4 client as such an address; all of them lie in one IPv6 network.
    known = getattr(known, "ipv4_mapped", None) or known
    network = known if known.version == 4 else ipaddress.ip_network((known, 64), strict=False)
    return sha256_hex(str(network))[:32]
