"""How do live screens hear that something was committed? A group message after commit, from any process or thread.

In a web process the event loop that serves the sockets also publishes, over its open connections; a worker or a command
has no such loop and publishes on a short-lived one. Live messages are pokes: whoever misses one reads the rows. A Redis
that is away, or hangs, costs liveliness only: nothing here raises for it or waits long.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable
from typing import Any

from channels.layers import get_channel_layer
from django.db import transaction

_log = logging.getLogger(__name__)
_PATIENCE_SECONDS, _PAUSE_SECONDS = 2.0, 1.0
_quiet_until = 0.0
_loop: asyncio.AbstractEventLoop | None = None


def serve_from(loop: asyncio.AbstractEventLoop) -> None:
    """Called by the web process once its loop runs: later publishes of this process go over it."""
    global _loop
    _loop = loop


def publish_on_commit(group: str, event: dict[str, Any]) -> None:
    """Publish when the current transaction has committed; at once when there is none."""
    transaction.on_commit(lambda: publish(group, event))


def publish(group: str, event: dict[str, Any]) -> None:
    """Send to a group, in a web process without waiting for it."""
    if _loop is not None and _loop.is_running():
        asyncio.run_coroutine_threadsafe(send(group, event), _loop)
    else:
        asyncio.run(send(group, event))


async def send(group: str, event: dict[str, Any]) -> None:
    """Publish from async code and wait until it has left; never raises. After a failure the next ones are left out for
    a moment, so that a Redis that hangs does not hold up every piece of every answer.
    """
    global _quiet_until
    if time.monotonic() >= _quiet_until and not await _tried(
        "publish", group, get_channel_layer().group_send(group, event)
    ):
        _quiet_until = time.monotonic() + _PAUSE_SECONDS


async def join(group: str, channel: str) -> bool:
    """Hear the group's messages from now on; False when Redis is away."""
    return await _tried("join", group, get_channel_layer().group_add(group, channel))


async def leave(group: str, channel: str) -> bool:
    return await _tried("leave", group, get_channel_layer().group_discard(group, channel))


async def _tried(verb: str, group: str, work: Awaitable[None]) -> bool:
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            await work
    except Exception as error:  # noqa: BLE001 (whatever Redis raises: the screens catch up from the rows)
        _log.warning("live_%s_failed group=%s error=%s", verb, group, type(error).__name__)
        return False
    return True
