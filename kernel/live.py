"""How do live screens hear that something was committed? A group message after commit, from any process or thread.

In a web process the event loop that serves the sockets also publishes, over its open connections; a worker or a command
has no such loop and publishes on a short-lived one. Live messages are pokes: whoever misses one reads the rows. A Redis
that is away, or hangs, costs liveliness only: nothing here raises for it or waits long.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

from channels.layers import get_channel_layer
from django.db import transaction

_log = logging.getLogger(__name__)
_PATIENCE_SECONDS, _PAUSE_SECONDS = 2.0, 1.0
_quiet_until = 0.0
_HERE = uuid4().hex
_loop: asyncio.AbstractEventLoop | None = None

Hear = Callable[[dict[str, Any]], Awaitable[None]]
_attending: dict[str, list[Hear]] = {}


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
    """Publish from async code and wait until it has left; never raises. Whoever attends in this process hears it at
    once, the others over Redis. After a failure the next ones are left out for a moment, so that a Redis that hangs
    does not hold up every piece of every answer.
    """
    global _quiet_until
    for hear in tuple(_attending.get(group, ())):
        await _told(hear, group, event)
    event = {**event, "origin": _HERE}
    if time.monotonic() >= _quiet_until and not await _tried(
        "publish", group, get_channel_layer().group_send(group, event)
    ):
        _quiet_until = time.monotonic() + _PAUSE_SECONDS


async def join(group: str, channel: str, hear: Hear) -> bool:
    """Hear the group's messages from now on: those of this process through `hear`, the others' over `channel`, where
    `is_ours` tells apart what was heard already. False when Redis is away.
    """
    joined = await _tried("join", group, get_channel_layer().group_add(group, channel))
    if joined:
        _attending.setdefault(group, []).append(hear)
    return joined


async def leave(group: str, channel: str) -> bool:
    return await _tried("leave", group, get_channel_layer().group_discard(group, channel))


def forget(group: str, hear: Hear) -> None:
    """Whoever attended is gone, in whatever way."""
    attending = _attending.get(group, [])
    if hear in attending:
        attending.remove(hear)
    if not attending:
        _attending.pop(group, None)


def is_ours(event: dict[str, Any]) -> bool:
    """Did this process send it? Then whoever attends here has heard it."""
    return event.get("origin") == _HERE


async def _told(hear: Hear, group: str, event: dict[str, Any]) -> None:
    try:
        await hear(event)
    except Exception as error:  # noqa: BLE001 (one socket that is going away must not keep the others from hearing)
        _log.warning("live_hear_failed group=%s error=%s", group, type(error).__name__)


async def _tried(verb: str, group: str, work: Awaitable[None]) -> bool:
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            await work
    except Exception as error:  # noqa: BLE001 (whatever Redis raises: the screens catch up from the rows)
        _log.warning("live_%s_failed group=%s error=%s", verb, group, type(error).__name__)
        return False
    return True
