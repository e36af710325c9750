"""Decide whether a URL, or an IP address that its host resolves to, belongs to the public internet.

Everything else is internal: the database, the cache, the local network, the cloud's metadata service. Every outgoing
request is checked here before its host is resolved, and again for each address of the answer. Pure.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from urllib.parse import urlsplit

MAX_URL_LENGTH = 500
# What names mean inside of a house (RFC 6761, RFC 6762, RFC 9476), beside single words.
_INSIDE = ("localhost", "local", "internal", "intranet", "lan", "home", "corp", "test", "invalid", "onion", "arpa")
_NAME = re.compile(r"(?=.{1,253}\Z)([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z0-9-]{2,63}\Z")
_NUMBER = re.compile(r"(0x[0-9a-f]*|\d+)\Z")

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
# IPv6 of the public internet is allocated from here only (RFC 3513); what wraps an IPv4 address lies elsewhere.
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
# NAT64's well-known prefix: a network without IPv4 gets it from its DNS for every name that has only an IPv4 address.
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# The interface identifiers of ISATAP (RFC 5214), which end in the IPv4 address of the tunnel's other end.
_ISATAP = (0x00005EFE, 0x02005EFE)
# Not of the public internet by IANA's registries of special addresses, but `is_global` to Python 3.11.
_SPECIAL: tuple[_Network, ...] = tuple(
    map(
        ipaddress.ip_network,
        (
            "192.0.0.0/24",  # protocol assignments (3.11 knows its first eight)
            "192.88.99.0/24",  # relays of 6to4
            "2001::/23",  # protocol assignments: Teredo, ORCHID, benchmarks
            "2002::/16",  # 6to4: the IPv4 address inside may be any
            "3fff::/20",  # documentation
        ),
    )
)
# Where clouds answer their own machines, with credentials: no setting opens these.
_METADATA: tuple[_Network, ...] = tuple(
    map(
        ipaddress.ip_network,
        (
            "169.254.0.0/16",  # AWS, Google, Azure, Tencent and others
            "168.63.129.16/32",  # Azure: a public address that never leaves the host
            "100.100.100.200/32",  # Alibaba
            "192.0.0.192/32",  # Oracle
            "fd00:ec2::/32",  # AWS
            "fd20:ce::/32",  # Google
            "fd00:42::42/128",  # Scaleway
            "fd00:a9fe:a9fe::1/128",  # Akamai
        ),
    )
)


def is_public_url(url: str, *, schemes: Collection[str] = ("https",)) -> bool:
    """Whether this is an absolute URL whose host is not obviously internal."""
    return _is_public_host(host_of(url, schemes=schemes))


def host_of(url: str, *, schemes: Collection[str]) -> str:
    """The host of an absolute URL with one of these schemes and no credentials; "" for anything else."""
    try:
        parts = urlsplit(url)
        host, _ = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        return ""
    # A control character, a space or a backslash is read differently by different parsers: the host that was checked
    # might not be the one that is called (SSRF).
    plain = url.isprintable() and " " not in url and "\\" not in url and len(url) <= MAX_URL_LENGTH
    # `https://known.example@other.example` shows one host and calls another.
    return host if plain and parts.scheme in schemes and "@" not in parts.netloc else ""


def is_public_address(address: str) -> bool:
    """Whether this IP address, and each IPv4 address that it wraps, belongs to the public internet."""
    parsed = _parse(address)
    return (
        parsed is not None
        and not is_metadata_address(address)
        and _is_public(parsed)
        and all(map(_is_public, _wrapped_addresses(parsed)))
    )


def is_metadata_address(address: str) -> bool:
    """Whether this IP address, however it is wrapped, is a cloud's metadata service."""
    parsed = _parse(address.partition("%")[0])
    return parsed is not None and any(
        _in_one_of(candidate, _METADATA) for candidate in (parsed, *_wrapped_addresses(parsed))
    )


def _parse(address: str) -> _Address | None:
    """Parse an address; an IPv4-mapped IPv6 address is the IPv4 address.

    None for anything else, an address with a zone included: it has a meaning on one link only.
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return None
    if isinstance(parsed, ipaddress.IPv4Address):
        return parsed
    # A zone names an interface of this machine.
    if parsed.scope_id is not None:
        return None
    return _embedded_ipv4(parsed) if parsed in _NAT64 else parsed.ipv4_mapped or parsed


def _is_public(address: _Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and address not in _GLOBAL_UNICAST:
        return False
    return (
        address.is_global and not address.is_multicast and not address.is_reserved and not _in_one_of(address, _SPECIAL)
    )


def _wrapped_addresses(address: _Address) -> tuple[ipaddress.IPv4Address, ...]:
    """IPv4 addresses that a tunnelled or translated IPv6 address leads to.

    These are 6to4's and Teredo's, and the last four bytes where no public interface could have them (compatible,
    translated, local NAT64) or where ISATAP says so.
    """
    if isinstance(address, ipaddress.IPv4Address):
        return ()
    wrapped = [address.sixtofour, *(address.teredo or ())]
    if address not in _GLOBAL_UNICAST or int(address) >> 32 & 0xFFFFFFFF in _ISATAP:
        wrapped.append(_embedded_ipv4(address))
    return tuple(inner for inner in wrapped if inner is not None)


def _embedded_ipv4(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address:
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)


def _in_one_of(address: _Address, networks: Collection[_Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)


def _is_public_host(host: str) -> bool:
    """A host that reads as a number is an address; only the dotted or bracketed notation is accepted."""
    last = host.rpartition(".")[2]
    # `0x7f.1` and `2130706433` are addresses to most resolvers.
    if ":" in host or _NUMBER.match(last):
        return is_public_address(host)
    return bool(_NAME.match(host)) and last not in _INSIDE
