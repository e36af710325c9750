"""Send one stream of server-sent events (WHATWG HTML, section 9.2) until its reader or its right to read is gone."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from uuid import UUID, uuid4

from asgiref.sync import sync_to_async
from django.db import connection

from apps.events import hub
from apps.events.hub import Filter, Stream
from kernel.ratelimit import concurrency
from kernel.tenancy import in_scope, in_thread

HEARTBEAT_SECONDS, RECHECK_SECONDS, RENEW_SECONDS = 15.0, 5.0, concurrency.RENEW_SECONDS
_RETRY_MILLISECONDS = 2000


def place_of(tenant_id: UUID) -> str:
    """Where the company's open streams are counted."""
    return f"events.{tenant_id.hex}"


def new_holder() -> str:
    return uuid4().hex


async def send_stream(
    tenant_id: UUID, wanted: Filter, after: int | None, *, holder: str, is_allowed: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """The bytes of the stream: what came after the number `after`, or from now on, then what comes.

    `is_allowed` repeats the authentication of the request every `RECHECK_SECONDS`, in a thread. An idle stream is sent
    the number up to which it is complete, so that a reader whose filter takes little can resume.
    """
    # The thread of this request is idle from now on, and must not keep a connection of the pool meanwhile.
    await sync_to_async(close_connection)()
    stream = Stream(wanted)
    try:
        upto = await hub.join(tenant_id, stream)
        yield f"retry: {_RETRY_MILLISECONDS}\nid: {upto if after is None else after}\n\n".encode()
        seq = upto if after is None else after
        while seq < upto:
            frames = await in_scope(tenant_id, hub.read_frames, seq, upto)
            if not frames:
                break
            seq = frames[-1].event.seq
            if content := hub.select(frames, wanted):
                yield content
        said = checked = renewed = time.monotonic()
        while not stream.is_dropped:
            content, complete = await stream.take(min(RECHECK_SECONDS, HEARTBEAT_SECONDS))
            moment = time.monotonic()
            # Checked before anything is sent: a revoked key reads nothing that happened after its last check.
            if moment - checked >= RECHECK_SECONDS:
                if not await in_thread(is_allowed):
                    return
                checked = moment
            if moment - renewed >= RENEW_SECONDS:
                await concurrency.renew({holder: place_of(tenant_id)})
                renewed = moment
            if not content and moment - said >= HEARTBEAT_SECONDS:
                content = f"id: {complete}\n\n".encode()
            if content:
                yield content
                said = moment
    finally:
        hub.leave(tenant_id, stream)
        await concurrency.release(place_of(tenant_id), holder)


def close_connection() -> None:
    """Give back the database connection of this thread."""
    connection.close()  # looked up in the thread that calls this
