"""The streams of this process: each company's events are read once for all of its streams.

A stream is woken by the channel layer after the commit that appended events; if Redis is away, by the next look a few
seconds later. A stream that does not take what it is sent is ended, and goes on where it was when it connects again.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from channels.layers import get_channel_layer

from apps.events import queries
from apps.events.models import Event
from apps.events.services import group_of
from kernel import live
from kernel.errors import error_location
from kernel.tenancy import in_scope

_log = logging.getLogger(__name__)
# How long appended events are gathered before they are read, and when they are looked for unasked.
_GATHER_SECONDS, _LOOK_SECONDS, _PAUSE_SECONDS = 0.02, 3.0, 1.0
_MOST_WAITING_BYTES = 8_000_000


@dataclass(frozen=True)
class Filter:
    """What a stream wants of the events that it may receive; None: all of them."""

    types: frozenset[str]
    deployment: UUID | None = None
    session: UUID | None = None

    def takes(self, event: Event) -> bool:
        return (
            event.type in self.types
            and self.deployment in (None, event.deployment_id)
            and self.session in (None, event.session_id)
        )


@dataclass(frozen=True)
class Frame:
    event: Event
    content: bytes


class Stream:
    """What one listener has yet to be sent."""

    def __init__(self, wanted: Filter) -> None:
        self.wanted = wanted
        self.seq = 0
        self.is_dropped = False
        self._waiting: list[bytes] = []
        self._bytes = 0
        self._filled = asyncio.Event()

    def put(self, content: bytes, seq: int) -> None:
        self.seq = seq
        if not content:
            return
        self._waiting.append(content)
        self._bytes += len(content)
        self.is_dropped = self._bytes > _MOST_WAITING_BYTES
        self._filled.set()

    async def take(self, seconds: float) -> tuple[bytes, int]:
        """What is waiting, empty when nothing came for so long, and the number up to which it is complete."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._filled.wait()
        content = b"".join(self._waiting)
        self._waiting, self._bytes = [], 0
        self._filled.clear()
        return content, self.seq


class _Feed:
    """Reads one company's events for its streams here."""

    def __init__(self, tenant_id: UUID) -> None:
        self.tenant_id = tenant_id
        self.seq = 0
        self.users = 0
        self.streams: set[Stream] = set()
        self.ready = asyncio.Event()
        self._woken = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    def stop(self) -> None:
        self._task.cancel()

    async def _run(self) -> None:
        layer, group = get_channel_layer(), group_of(self.tenant_id)
        channel = await layer.new_channel()
        hearing: asyncio.Task[None] | None = None
        try:
            while True:
                try:
                    if hearing is None and await live.join(group, channel, self._hear):
                        hearing = asyncio.create_task(self._receive(layer, channel))
                    await self._look()
                    self.ready.set()
                except Exception as error:  # noqa: BLE001 (a service that is away comes back, and the rows are kept)
                    _log.warning("events_not_read tenant=%s error=%s", self.tenant_id, error_location(error))
                    await asyncio.sleep(_PAUSE_SECONDS)
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_SECONDS):
                        await self._woken.wait()
                        await asyncio.sleep(_GATHER_SECONDS)
                self._woken.clear()
        finally:
            live.remove_listener(group, self._hear)
            if hearing is not None:
                hearing.cancel()
                await live.leave(group, channel)

    async def _hear(self, event: dict[str, object]) -> None:
        self._woken.set()

    async def _receive(self, layer: Any, channel: str) -> None:
        while True:
            await layer.receive(channel)
            self._woken.set()

    async def _look(self) -> None:
        if not self.ready.is_set():
            self.seq, _ = await in_scope(self.tenant_id, queries.head)
            return
        while frames := await in_scope(self.tenant_id, read_frames, self.seq):
            self.seq = frames[-1].event.seq
            contents: dict[Filter, bytes] = {}
            for stream in tuple(self.streams):
                if stream.wanted not in contents:
                    contents[stream.wanted] = select(frames, stream.wanted)
                stream.put(contents[stream.wanted], self.seq)


_feeds: dict[UUID, _Feed] = {}


async def join(tenant_id: UUID, stream: Stream) -> int:
    """Send the company's new events to `stream` from now on; returns the number of the last one before."""
    feed = _feeds.get(tenant_id)
    if feed is None:
        feed = _feeds[tenant_id] = _Feed(tenant_id)
    feed.users += 1
    try:
        await feed.ready.wait()
    except BaseException:
        _release(feed)
        raise
    feed.streams.add(stream)
    stream.seq = feed.seq
    return feed.seq


def leave(tenant_id: UUID, stream: Stream) -> None:
    feed = _feeds.get(tenant_id)
    if feed is not None and stream in feed.streams:
        feed.streams.discard(stream)
        _release(feed)


def _release(feed: _Feed) -> None:
    feed.users -= 1
    if not feed.users:
        feed.stop()
        _feeds.pop(feed.tenant_id, None)


def read_frames(after: int, until: int | None = None) -> list[Frame]:
    """The next events as a stream sends them; inside a scope."""
    events = queries.events_after(after, until=until)
    return [
        Frame(event, _frame(event, content)) for event, content in zip(events, queries.rendered(events), strict=True)
    ]


def select(frames: Sequence[Frame], wanted: Filter) -> bytes:
    return b"".join(frame.content for frame in frames if wanted.takes(frame.event))


def _frame(event: Event, content: dict[str, object]) -> bytes:
    return f"id: {event.seq}\nevent: {event.type}\ndata: {json.dumps(content)}\n\n".encode()
