"""Limit how many conversations may be started from one address.

Counted per deployment, before anything is stored; resuming a conversation does not count. The loopback address is not
counted: it is a developer, a test, or a proxy that does not forward addresses. While Redis is away every start is
allowed: the limit protects a disk, not a secret.
"""

from __future__ import annotations

import ipaddress
import logging
from uuid import UUID

from kernel.canonical import sha256_hex
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.ratelimit import fixed_window
from kernel.ratelimit.fixed_window import Limit

_log = logging.getLogger(__name__)

WINDOW_SECONDS = 10 * 60
MAX_BEGINNINGS = 120


def count_beginning(deployment_id: UUID, address: str) -> tuple[Limit, ...]:
    """Count one; returns what to give to `forget_beginning`. Raises 429 `rate_limited` with `retry_after`."""
    if is_ours(address):
        return ()
    limit = Limit(f"begin:{deployment_id}:{name_of(address)}", MAX_BEGINNINGS, WINDOW_SECONDS)
    try:
        used_up = fixed_window.consume([limit])
    except Exception as error:  # noqa: BLE001 (whatever the cache raises)
        _log.warning("beginning_not_counted error=%s", type(error).__name__)
        return ()
    if used_up is not None:
        said = gettext("Too many conversations were started from your network. Please try again in a few minutes.")
        raise SilasError(ErrorCode.RATE_LIMITED, said, extra={"retry_after": WINDOW_SECONDS // 2})
    return (limit,)


def forget_beginning(counted: tuple[Limit, ...]) -> None:
    """It was an old conversation."""
    try:
        fixed_window.refund(counted)
    except Exception as error:  # noqa: BLE001 (one too many is counted)
        _log.warning("beginning_kept error=%s", type(error).__name__)


def is_ours(address: str) -> bool:
    """Whether the address is this machine's own, or unknown."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return not address


def name_of(address: str) -> str:
    """What an address is counted as: a hash, and of IPv6 only the network, because one household has them all."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return sha256_hex(address)[:32]
    known = getattr(known, "ipv4_mapped", None) or known
    network = known if known.version == 4 else ipaddress.ip_network((known, 64), strict=False)
    return sha256_hex(str(network))[:32]
