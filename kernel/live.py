"""Publish events to live screens after commit, from any process or thread.

In a web process the event loop that serves the sockets also publishes, over its open connections; a worker or a command
has no such loop and publishes over a pooled connection of its own. Events are hints to reload: a listener that misses
one reads the rows. If Redis is away or hangs, screens are late; nothing here raises for it or waits long.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any
from uuid import uuid4

from channels.layers import get_channel_layer
from django.conf import settings
from django.db import transaction
from redis import Redis

from kernel.redis_servers import connect
from kernel.tenancy import before_commit

_log = logging.getLogger(__name__)
_PATIENCE_SECONDS, _PAUSE_SECONDS = 2.0, 1.0
_GATHER_SECONDS = 0.01
_quiet_until = 0.0
_HERE = uuid4().hex
EVENTS = "live.told"
# Of the group's channels in Redis, as channels_redis names them by default.
_PREFIX = "asgi"

Listener = Callable[[dict[str, Any]], Awaitable[None]]
_listeners: dict[str, list[Listener]] = {}


def serve_from(loop: asyncio.AbstractEventLoop) -> None:
    """Publish from this loop from now on, until it closes. Called by the web process once its loop runs."""
    global _outbox
    # In tests one process has several loops, one after the other.
    if _outbox is None or _outbox.loop is not loop:
        _outbox = _Outbox(loop)
        _outbox.end_with_loop()


def publish_on_commit(group: str, event: dict[str, object]) -> None:
    """Publish when the current transaction has committed; at once if there is none."""
    transaction.on_commit(lambda: publish(group, event))


def poke_on_commit(group: str, event: dict[str, object]) -> None:
    """Publish on commit, without duplicates; for events that may as well be sent twice.

    All events of a scope are sent together, so that a worker that starts hundreds of sessions opens one connection.
    """
    before_commit(_flush_pokes, (group, event))


def _flush_pokes(pokes: list[tuple[str, dict[str, object]]]) -> None:
    # By their text, since a dict cannot be a key.
    unique = list({repr(poke): poke for poke in pokes}.values())
    transaction.on_commit(lambda: _publish_batch(unique))


def _publish_batch(pokes: list[tuple[str, dict[str, object]]]) -> None:
    outbox = _outbox
    if outbox is None or not outbox.loop.is_running():
        _publish_without_loop(pokes)
        return
    for poke in pokes:
        outbox.hand_over(*poke)


def publish(group: str, event: dict[str, object]) -> None:
    """Publish to a group, in a web process without waiting; equal events in quick succession may be merged."""
    # Read once: another thread may replace it between the check and the use.
    outbox = _outbox
    if outbox is not None and outbox.loop.is_running():
        outbox.hand_over(group, event)
    else:
        _publish_without_loop([(group, event)])


async def send(group: str, event: dict[str, Any]) -> None:
    """Publish from async code; never raises.

    Listeners of this process are called before this returns. Other processes get the event over Redis, in order and a
    moment later, so that a slow Redis delays no caller.
    """
    await _publish_event(group, event, is_poke=False)


async def _publish_event(group: str, event: dict[str, object], *, is_poke: bool) -> None:
    # A copy: a listener may leave while the others are called.
    for hear in tuple(_listeners.get(group, ())):
        await _deliver(hear, group, event)
    outbox = _outbox
    if outbox is not None and outbox.loop is asyncio.get_running_loop():
        outbox.put(group, event, is_poke=is_poke)
    else:
        await _publish(group, event)


class _Outbox:
    """Events that the web process has yet to publish over Redis, oldest first, without duplicate pokes.

    A loop that closes publishes what is waiting and leaves no task behind. Daphne's loop is never closed, it stops with
    its process: what waits then is lost, as if Redis were away.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._waiting: list[tuple[str, dict[str, object]]] = []
        self._posting: asyncio.Task[None] | None = None
        self._handed: deque[tuple[str, dict[str, object]]] = deque()
        self._telling: asyncio.Task[None] | None = None
        self._woken = False
        self._ended = False
        self._ending = self._wait_for_the_end()

    def end_with_loop(self) -> None:
        """Finish with the loop: a closing loop finishes the async generators that were started on it."""
        with suppress(StopIteration):
            self._ending.__anext__().send(None)

    async def _wait_for_the_end(self) -> AsyncGenerator[None]:
        global _outbox
        try:
            yield
        finally:
            self._ended = True
            _outbox = None if _outbox is self else _outbox
            for task in (self._telling, self._posting):
                if task is not None:
                    await asyncio.wait((task,))

    def hand_over(self, group: str, event: dict[str, object]) -> None:
        """Queue an event from any thread; the loop is woken once for all events of a transaction."""
        self._handed.append((group, event))
        if not self._woken:
            self._woken = True
            with suppress(RuntimeError):  # the loop closed this moment
                self.loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        self._woken = False
        if not self._ended and (self._telling is None or self._telling.done()):
            self._telling = self.loop.create_task(self._tell_all())

    async def _tell_all(self) -> None:
        while self._handed:
            await _publish_event(*self._handed.popleft(), is_poke=True)

    def put(self, group: str, event: dict[str, object], *, is_poke: bool) -> None:
        if not is_poke or (group, event) not in self._waiting:
            self._waiting.append((group, event))
        if self._posting is None:
            self._posting = self.loop.create_task(self._post())

    async def _post(self) -> None:
        try:
            while self._waiting:
                # What comes within a moment, such as the pieces of an answer, leaves in one message.
                await asyncio.sleep(_GATHER_SECONDS)
                waiting, self._waiting = self._waiting, []
                await _publish_by_group(waiting)
        finally:
            self._posting = None


_outbox: _Outbox | None = None


async def _publish_by_group(pokes: list[tuple[str, dict[str, object]]]) -> None:
    for group, events in _by_group(pokes).items():
        await _publish(group, *events)


def _by_group(pokes: list[tuple[str, dict[str, object]]]) -> dict[str, list[dict[str, object]]]:
    by_group: dict[str, list[dict[str, object]]] = {}
    for group, event in pokes:
        by_group.setdefault(group, []).append(event)
    return by_group


async def _publish(group: str, *events: dict[str, object]) -> None:
    """Publish to one group. After a failure publishing pauses for a moment, so that a hanging Redis delays little."""
    if time.monotonic() < _quiet_until:
        return
    message = {"type": EVENTS, "events": events, "origin": _HERE}
    if not await _attempt("publish", group, get_channel_layer().group_send(group, message)):
        _pause()


def _publish_without_loop(pokes: list[tuple[str, dict[str, object]]]) -> None:
    """Publish from a process that serves no sockets. Listeners of this process, if there are any, hear it over Redis.

    The message is the one that channels_redis's `group_send` publishes.
    """
    if time.monotonic() < _quiet_until:
        return
    layer = get_channel_layer()
    try:
        with _redis().pipeline(transaction=False) as pipeline:
            for group, events in _by_group(pokes).items():
                message = {"type": EVENTS, "events": events, "origin": None}
                pipeline.publish(f"{_PREFIX}__group__{group}", layer.serialize(message))
            pipeline.execute()
    except Exception as error:  # noqa: BLE001 (any error of Redis: the screens catch up from the rows)
        _log.warning("live_publish_failed group=%s error=%s", pokes[0][0], type(error).__name__)
        _pause()


@cache
def _redis() -> Redis:
    """Connections that threads share; redis-py opens others after a fork."""
    patience = {"socket_timeout": _PATIENCE_SECONDS, "socket_connect_timeout": _PATIENCE_SECONDS}
    return connect(settings.CHANNELS_URL, **patience)


def _pause() -> None:
    global _quiet_until
    _quiet_until = time.monotonic() + _PAUSE_SECONDS


async def join(group: str, channel: str, hear: Listener) -> bool:
    """Listen to the group: events of this process come through `hear`, those of others over `channel`.

    `unpack_events` tells them apart. False if Redis is away.
    """
    joined = await _attempt("join", group, get_channel_layer().group_add(group, channel))
    if joined:
        _listeners.setdefault(group, []).append(hear)
    return joined


async def leave(group: str, channel: str) -> bool:
    return await _attempt("leave", group, get_channel_layer().group_discard(group, channel))


def remove_listener(group: str, hear: Listener) -> None:
    """Remove a listener, however its connection ended."""
    attending = _listeners.get(group, [])
    if hear in attending:
        attending.remove(hear)
    if not attending:
        _listeners.pop(group, None)


def listener_count(group: str) -> int:
    """How many listen to the group in this process."""
    return len(_listeners.get(group, ()))


def unpack_events(message: dict[str, Any], *, attending: bool) -> Sequence[dict[str, object]]:
    """The events in a message to a consumer. A consumer that is `attending` has had this process's events already."""
    if message["type"] != EVENTS:
        return (message,)
    return () if attending and message["origin"] == _HERE else message["events"]


async def _deliver(hear: Listener, group: str, event: dict[str, object]) -> None:
    try:
        await hear(event)
    except Exception as error:  # noqa: BLE001 (one socket that is going away must not keep the others from hearing)
        _log.warning("live_hear_failed group=%s error=%s", group, type(error).__name__)


async def _attempt(verb: str, group: str, work: Awaitable[None]) -> bool:
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            await work
    except Exception as error:  # noqa: BLE001 (any error of Redis: the screens catch up from the rows)
        _log.warning("live_%s_failed group=%s error=%s", verb, group, type(error).__name__)
        return False
    return True
