"""How do live screens hear that something was committed? A group message after commit, from any process or thread.

In a web process the event loop that serves the sockets also publishes, over its open connections; a worker or a command
has no such loop and publishes on a short-lived one. Live messages are pokes: whoever misses one reads the rows.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from channels.layers import get_channel_layer
from django.db import transaction

_log = logging.getLogger(__name__)
_loop: asyncio.AbstractEventLoop | None = None


def serve_from(loop: asyncio.AbstractEventLoop) -> None:
    """Called by the web process once its loop runs: later publishes of this process go over it."""
    global _loop
    _loop = loop


def publish_on_commit(group: str, event: dict[str, Any]) -> None:
    """Publish when the current transaction has committed; at once when there is none."""
    transaction.on_commit(lambda: publish(group, event))


def publish(group: str, event: dict[str, Any]) -> None:
    """Send to a group without waiting for it; a lost Redis costs liveliness, never data."""
    if _loop is not None and _loop.is_running():
        asyncio.run_coroutine_threadsafe(send(group, event), _loop)
    else:
        asyncio.run(send(group, event))


async def send(group: str, event: dict[str, Any]) -> None:
    """Publish from async code and wait until it has left; never raises."""
    try:
        await get_channel_layer().group_send(group, event)
    except Exception as error:  # noqa: BLE001 (whatever Redis raises: the screens catch up from the rows)
        _log.warning("live_publish_failed group=%s error=%s", group, type(error).__name__, exc_info=True)
