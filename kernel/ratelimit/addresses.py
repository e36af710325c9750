"""What an internet address is counted as."""

from __future__ import annotations

import ipaddress

from kernel.canonical import sha256_hex


def is_own_machine(address: str) -> bool:
    """Whether this is the loopback address, or none: a developer, a test, or a proxy that does not forward addresses.

    No other client can be behind it, so it is not counted.
    """
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return not address


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
