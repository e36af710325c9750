"""Limit what costs more than a message (files, transcripts), per conversation and per address, before it is written.

While Redis is away these are refused: an e-mail to a stranger, or a disk that fills, can wait.
"""

from __future__ import annotations

from collections.abc import Iterable

from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.ratelimit import fixed_window
from kernel.ratelimit.addresses import address_key, is_own_machine
from kernel.ratelimit.fixed_window import Limit, Unavailable

HOUR, MINUTE = 3600, 60


def count(what: str, whom: object, *, most: int, address: str, most_there: int, seconds: int) -> list[Limit]:
    """Count one of `what` for the conversation `whom`, if there is one, and for the internet address it comes from;
    what was counted. Raises as `count_under`."""
    limits = [Limit(f"{what}:{whom}", most, seconds)] if whom else []
    # Behind a proxy that passes no address on, all visitors would share one limit.
    if not is_own_machine(address):
        limits.append(Limit(f"{what}:at:{address_key(address)}", most_there, seconds))
    return count_under(limits)


def count_under(limits: Iterable[Limit]) -> list[Limit]:
    """Raises 429 `rate_limited` with `retry_after`, and 503 `unavailable` where nothing can be counted."""
    listed = list(limits)
    if not listed:
        return []
    used_up = fixed_window.try_consume(listed, otherwise="visitor_action_not_counted")
    if isinstance(used_up, Unavailable):
        raise SilasError(ErrorCode.UNAVAILABLE, gettext("This isn't possible right now. Please try again in a moment."))
    if used_up is not None:
        said = gettext("Too many requests. Please wait a moment.")
        raise SilasError(ErrorCode.RATE_LIMITED, said, extra={"retry_after": used_up.seconds})
    return listed
