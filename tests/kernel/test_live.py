"""Does news reach whoever attends, in order, once, whoever says it and however much at once?"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
from channels.layers import get_channel_layer
from django.conf import settings
from redis import Redis

from kernel import live
from kernel.tenancy import tenant_scope

GROUP = "news.of.a.test"


@pytest.fixture
async def heard() -> Any:
    """What a socket of this process heard."""
    events: list[dict[str, Any]] = []

    async def hear(event: dict[str, Any]) -> None:
        events.append(event)

    live.serve_from(asyncio.get_running_loop())
    await live.join(GROUP, await get_channel_layer().new_channel(), hear)
    yield events
    live.remove_listener(GROUP, hear)


async def test_news_from_many_threads_is_all_heard_and_in_each_ones_order(heard: list[dict[str, Any]]) -> None:
    def say(speaker: int) -> None:
        for number in range(50):
            live.publish(GROUP, {"type": "said", "by": speaker, "number": number})

    speakers = [threading.Thread(target=say, args=[speaker]) for speaker in range(8)]
    for speaker in speakers:
        speaker.start()
    for _ in range(1000):
        if len(heard) == 400:
            break
        await asyncio.sleep(0.01)
    by_speaker = [[event["number"] for event in heard if event["by"] == speaker] for speaker in range(8)]
    assert by_speaker == [list(range(50))] * 8


async def other_hears(say: Callable[[int], Awaitable[None]]) -> list[int]:
    """What another process hears of this moment."""
    layer = get_channel_layer()
    other = await layer.new_channel()
    await layer.group_add(GROUP, other)
    for number in (1, 2, 2, 3):
        await say(number)
    told = await asyncio.wait_for(layer.receive(other), 5)
    return [event["number"] for event in live.unpack_events(told, attending=False)]


async def test_another_process_is_told_of_a_moment_in_one_message_and_of_each_poke_once(
    heard: list[dict[str, Any]],
) -> None:
    async def poke(number: int) -> None:
        live.publish(GROUP, {"type": "said", "number": number})

    assert await other_hears(poke) == [1, 2, 3]


async def test_another_process_is_told_of_two_pieces_that_are_the_same(heard: list[dict[str, Any]]) -> None:
    """An answer may say the same word twice."""

    async def say(number: int) -> None:
        await live.send(GROUP, {"type": "said", "number": number})

    assert await other_hears(say) == [1, 2, 2, 3]


async def test_socket_that_attends_is_not_told_again_what_it_heard(heard: list[dict[str, Any]]) -> None:
    layer = get_channel_layer()
    other = await layer.new_channel()
    await layer.group_add(GROUP, other)
    await live.send(GROUP, {"type": "said", "number": 1})
    told = await asyncio.wait_for(layer.receive(other), 5)
    assert len(heard) == 1
    assert live.unpack_events(told, attending=True) == ()


async def test_socket_that_fails_to_hear_does_not_keep_the_others_from_it(heard: list[dict[str, Any]]) -> None:
    async def broken(event: dict[str, Any]) -> None:
        raise RuntimeError

    await live.join(GROUP, await get_channel_layer().new_channel(), broken)
    live._listeners[GROUP].reverse()
    await live.send(GROUP, {"type": "said", "number": 1})
    live.remove_listener(GROUP, broken)
    assert len(heard) == 1


def test_pokes_of_a_scope_leave_a_worker_in_one_message_and_each_once(tenant: Any) -> None:
    with Redis.from_url(settings.REDIS_URL) as redis, redis.pubsub() as line:
        line.psubscribe(f"*{GROUP}")
        line.get_message(timeout=5)
        with tenant_scope(tenant):
            for number in (1, 2, 2, 3):
                live.poke_on_commit(GROUP, {"type": "said", "number": number})
        said = line.get_message(timeout=5)
        redis.publish(said["channel"], b"the end")
        last = line.get_message(timeout=5)
    assert said["data"].count(b"number") == 3
    assert last["data"] == b"the end"


async def test_event_of_a_worker_is_received_by_a_socket_and_by_one_that_attends(tenant: Any) -> None:
    """A worker has no loop: what it publishes has to be what the channel layer's own `group_send` would."""
    layer = get_channel_layer()
    other = await layer.new_channel()
    await layer.group_add(GROUP, other)
    await asyncio.to_thread(live.publish, GROUP, {"type": "said", "number": 1})
    told = await asyncio.wait_for(layer.receive(other), 5)
    for attending in (False, True):
        assert list(live.unpack_events(told, attending=attending)) == [{"type": "said", "number": 1}]


def test_redis_that_refuses_delays_a_worker_once_and_raises_nothing(
    monkeypatch: pytest.MonkeyPatch, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.CHANNELS_URL = "redis://127.0.0.1:1/0"
    live._redis.cache_clear()
    monkeypatch.setattr(live, "_quiet_until", 0.0)
    live.publish(GROUP, {"type": "said"})
    live.publish(GROUP, {"type": "said"})
    live._redis.cache_clear()
    assert [record.args for record in caplog.records if "live_publish_failed" in record.msg] == [
        (GROUP, "ConnectionError")
    ]


def test_poke_of_what_was_taken_back_is_not_heard(tenant: Any) -> None:
    def taken_back() -> None:
        with tenant_scope(tenant):
            live.poke_on_commit(GROUP, {"type": "said"})
            raise RuntimeError

    with Redis.from_url(settings.REDIS_URL) as redis, redis.pubsub() as line:
        line.psubscribe(f"*{GROUP}")
        line.get_message(timeout=5)
        with pytest.raises(RuntimeError):
            taken_back()
        redis.publish(GROUP, b"the end")
        last = line.get_message(timeout=5)
    assert last["data"] == b"the end"


# -- the end of a loop -------------------------------------------------------------------------------------------------


async def served(until: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.AbstractEventLoop:
    """A loop that says something until it closes, and is about to close."""
    loop = asyncio.get_running_loop()
    live.serve_from(loop)
    speaking = loop.create_task(until())
    await asyncio.sleep(0)
    assert not speaking.done()
    return loop


def pending_after(until: Callable[[], Coroutine[Any, Any, None]]) -> set[asyncio.Task[Any]]:
    with asyncio.Runner() as runner:
        loop = runner.run(served(until))
    return asyncio.all_tasks(loop)


def test_loop_that_closes_leaves_no_news_behind_that_its_tasks_said_last() -> None:
    async def last_words() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await live.send(GROUP, {"type": "said"})

    assert pending_after(last_words) == set()


def test_loop_that_closes_leaves_no_news_behind_that_a_thread_said_last() -> None:
    tasks_are_over = threading.Event()

    def last_words() -> None:
        tasks_are_over.wait(5)
        live.publish(GROUP, {"type": "said"})

    async def ask_a_thread() -> None:
        thread = asyncio.get_running_loop().run_in_executor(None, last_words)
        try:
            await asyncio.shield(thread)
        finally:
            tasks_are_over.set()

    assert pending_after(ask_a_thread) == set()


async def test_what_was_said_when_a_loop_closed_is_heard_elsewhere() -> None:
    async def last_words() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            live.publish(GROUP, {"type": "said", "number": 1})

    async def close_a_loop(number: int) -> None:
        if number == 1:
            await asyncio.to_thread(pending_after, last_words)

    assert await other_hears(close_a_loop) == [1]


def test_news_after_a_loop_closed_raises_for_nobody() -> None:
    late: list[Any] = []

    async def nothing() -> None:
        late.append(live._outbox)
        await asyncio.Event().wait()

    pending_after(nothing)
    late[0].hand_over(GROUP, {"type": "said"})
    live.publish(GROUP, {"type": "said"})
