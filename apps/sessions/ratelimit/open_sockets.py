"""Limit in how many sockets a conversation may be open, over all processes.

A process renews the seats of its sockets; those of a dead process are free within a minute. While Redis is away the
sockets of this process are counted alone. Called by the sockets and the web process's background loop.
"""

from __future__ import annotations

import logging
from uuid import UUID

from apps.access.tokens import Visitor
from kernel import live
from kernel.language import gettext_lazy
from kernel.ratelimit import concurrency

_log = logging.getLogger(__name__)

RETRY_SECONDS = 15
CROWDED = gettext_lazy("This conversation is open in too many windows. Close one to continue. Your messages are saved.")

_held: dict[str, str] = {}


async def sit_down(visitor: Visitor, holder: str, *, group: str, most: int) -> bool:
    """Whether one more window of the conversation may open; `holder` names its socket."""
    # `>`, because this socket listens already. Counted here first, so that the limit holds while Redis is away.
    if live.listener_count(group) > most:
        return False
    place = _place(visitor)
    try:
        seated = await concurrency.acquire(place, holder, maximum=most)
    except Exception as error:  # noqa: BLE001 (any error of Redis: see above)
        _log.warning("window_not_counted session=%s error=%s", visitor.session_id, type(error).__name__)
        seated = True
    if seated:
        _held[holder] = place
    return seated


async def stand_up(holder: str) -> None:
    """Release the window's seat after it closed. If Redis cannot be reached, the seat expires."""
    place = _held.pop(holder, None)
    if place is None:
        return
    try:
        await concurrency.release(place, holder)
    except Exception as error:  # noqa: BLE001 (the same)
        _log.warning("window_not_left error=%s", type(error).__name__)


async def renew() -> None:
    """Keep the seats of all windows that are open in this process. Raises what Redis raises."""
    if _held:
        await concurrency.renew(dict(_held))


async def is_open(tenant_id: UUID, session_id: UUID) -> bool:
    """Whether the conversation is open in a window of some process now; False while Redis is away."""
    try:
        return await concurrency.holders(f"windows:{tenant_id}:{session_id}") > 0
    except Exception as error:  # noqa: BLE001 (the same)
        _log.warning("windows_not_counted session=%s error=%s", session_id, type(error).__name__)
        return False


def _place(visitor: Visitor) -> str:
    return f"windows:{visitor.tenant_id}:{visitor.session_id}"
