"""Limit what costs more than a message (files, transcripts), per conversation and per address, before it is written.

While Redis is away these are refused: an e-mail to a stranger, or a disk that fills, can wait.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from apps.sessions.ratelimit import new_conversations
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.ratelimit import fixed_window
from kernel.ratelimit.fixed_window import Limit

HOUR, MINUTE = 3600, 60
_log = logging.getLogger(__name__)


def count(what: str, whom: object, *, most: int, address: str, most_there: int, seconds: int) -> list[Limit]:
    """Count one of `what` for the conversation `whom` and for the internet address it comes from; what was counted.
    Raises as `count_under`."""
    limits = [Limit(f"{what}:{whom}", most, seconds)]
    if not new_conversations.is_ours(address):
        limits.append(Limit(f"{what}:at:{new_conversations.name_of(address)}", most_there, seconds))
    return count_under(limits)


def count_under(limits: Iterable[Limit]) -> list[Limit]:
    """Raises 429 `rate_limited` with `retry_after`, and 503 `unavailable` where nothing can be counted."""
    listed = list(limits)
    try:
        used_up = fixed_window.consume(listed)
    except Exception as error:  # noqa: BLE001 (whatever the cache raises)
        _log.warning("visitor_action_not_counted error=%s", type(error).__name__)
        raise SilasError(
            ErrorCode.UNAVAILABLE, gettext("This isn't possible right now. Please try again in a moment.")
        ) from None
    if used_up is not None:
        said = gettext("Too many requests. Please wait a moment.")
        raise SilasError(ErrorCode.RATE_LIMITED, said, extra={"retry_after": used_up.seconds})
    return listed
