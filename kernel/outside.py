"""May we knock at this address? Decides from the words alone whether a URL, or an address it stands for, is outside of
the house: its database, its cache, its neighbours, the machine's own metadata. Pure; names are looked up by who knocks.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from urllib.parse import urlsplit

LONGEST = 500
# What names mean inside of a house (RFC 6761, RFC 6762, RFC 9476), beside single words.
_INSIDE = ("localhost", "local", "internal", "intranet", "lan", "home", "corp", "test", "invalid", "onion", "arpa")
_NAME = re.compile(r"(?=.{1,253}\Z)([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z0-9-]{2,63}\Z")
_NUMBER = re.compile(r"(0x[0-9a-f]*|\d+)\Z")
_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")


def is_outside_url(url: str, *, schemes: Collection[str] = ("https",)) -> bool:
    """Whether this is a whole URL whose host is not plainly inside."""
    return _is_outside_host(host_of(url, schemes=schemes))


def host_of(url: str, *, schemes: Collection[str]) -> str:
    """The host of a whole URL of such a scheme, without a name and password; "" for anything else."""
    try:
        parts = urlsplit(url)
        host, _ = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        return ""
    plain = url.isprintable() and " " not in url and "\\" not in url and len(url) <= LONGEST
    return host if plain and parts.scheme in schemes and "@" not in parts.netloc else ""


def is_outside(address: str) -> bool:
    """Whether this IP address is one of the public internet, however it is wrapped."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return _wrapped_in(found).is_global and not found.is_multicast


def _wrapped_in(
    found: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The IPv4 address that a mapped, translated or tunnelled one leads to."""
    if isinstance(found, ipaddress.IPv4Address):
        return found
    if found in _TRANSLATED:
        return ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
    return found.ipv4_mapped or found.sixtofour or found


def _is_outside_host(host: str) -> bool:
    """A host that reads as a number is an address, in whatever notation: only the plain one is taken."""
    last = host.rpartition(".")[2]
    if ":" in host or _NUMBER.match(last):
        return is_outside(host)
    return bool(_NAME.match(host)) and last not in _INSIDE
