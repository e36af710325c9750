"""Decide for a run's proxy whether a place is on the run's list and its address belongs to the public internet.

A place is "host:port", in one spelling: lower case, no trailing dot, IPv6 in brackets. Listing a name does not allow
what it resolves to: every address must be public, unless the operator named the very place in `SILAS_EGRESS_PRIVATE`;
cloud metadata addresses are reached by no setting.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from kernel.http.addresses import is_metadata_address, is_public_address

_HOST = re.compile(r"(?=.{1,253}\Z)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\Z")
_BRACKETED = re.compile(r"\[([0-9a-f:.]+)\]\Z")


def parse_place(entry: str) -> tuple[str, int] | None:
    """(host, port) of "host:port", or None if it is not one."""
    host, _, port = entry.rpartition(":")
    host = host.lower().removesuffix(".")
    bracketed = _BRACKETED.match(host)
    if not (bracketed or _HOST.match(host)) or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65_536:
        return None
    return (bracketed[1] if bracketed else host), int(port)


def format_place(host: str, port: int) -> str:
    """The canonical spelling of a place."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_places(entries: Iterable[str]) -> frozenset[str]:
    """Entries in their canonical spelling; invalid ones are left out."""
    return frozenset(format_place(*place) for entry in entries if (place := parse_place(entry)))


def choose_address(place: str, addresses: Collection[str], *, private: Collection[str]) -> str:
    """The address to call, or "" if one of the name's addresses is internal."""
    if not addresses or any(map(is_metadata_address, addresses)):
        return ""
    allowed = place in private or all(map(is_public_address, addresses))
    return next(iter(addresses)) if allowed else ""
