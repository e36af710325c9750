"""Limit how many conversations may be started from one address.

Counted per deployment, before anything is stored; resuming a conversation does not count. While Redis is away
every start is allowed: the limit protects a disk, not a secret.
"""

from __future__ import annotations

from uuid import UUID

from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.ratelimit import fixed_window
from kernel.ratelimit.addresses import address_key, is_own_machine
from kernel.ratelimit.fixed_window import Limit, Unavailable

WINDOW_SECONDS = 10 * 60
MAX_BEGINNINGS = 120


def count_beginning(deployment_id: UUID, address: str) -> tuple[Limit, ...]:
    """Count one; returns what to give to `forget_beginning`. Raises 429 `rate_limited` with `retry_after`."""
    if is_own_machine(address):
        return ()
    limit = Limit(f"begin:{deployment_id}:{address_key(address)}", MAX_BEGINNINGS, WINDOW_SECONDS)
    used_up = fixed_window.try_consume([limit], otherwise="beginning_not_counted")
    if isinstance(used_up, Unavailable):
        return ()
    if used_up is not None:
        said = gettext("Too many conversations were started from your network. Please try again in a few minutes.")
        raise SilasError(ErrorCode.RATE_LIMITED, said, extra={"retry_after": WINDOW_SECONDS // 2})
    return (limit,)


def forget_beginning(counted: tuple[Limit, ...]) -> None:
    """It was an old conversation."""
    fixed_window.try_refund(counted, otherwise="beginning_kept")
