"""Does a throttle hold when many try at once?"""

from __future__ import annotations

import asyncio
from threading import Event
from uuid import uuid4

import pytest
from django.core.cache import cache

from kernel.ratelimit import fixed_window
from kernel.ratelimit.fixed_window import Limit
from kernel.tenancy import in_thread
from kernel.tenancy.threads import use_low_priority_pool
from tests.rivals import race


@pytest.fixture
def limit() -> Limit:
    return Limit(f"test:{uuid4()}", most=3, seconds=60)


def test_try_within_the_limit_is_let_through_and_one_beyond_it_names_it(limit: Limit) -> None:
    assert [fixed_window.consume([limit]) for _ in range(4)] == [None, None, None, limit]


def test_rivals_get_no_more_than_the_limit_together(limit: Limit) -> None:
    answers = race(*[lambda: fixed_window.consume([limit])] * 12)
    assert answers.count(None) == 3


def test_refused_try_counts_under_no_other_limit(limit: Limit) -> None:
    other = Limit(f"test:{uuid4()}", most=9, seconds=60)
    for _ in range(5):
        fixed_window.consume([other, limit])
    assert cache.get(other.key) == 3


def test_try_that_is_taken_back_leaves_room_for_another(limit: Limit) -> None:
    for _ in range(5):
        fixed_window.consume([limit])
        fixed_window.refund([limit])
    assert fixed_window.consume([limit]) is None


def test_count_runs_out_by_itself(limit: Limit) -> None:
    fixed_window.consume([limit])
    assert 0 < cache._cache.get_client().ttl(cache.make_key(limit.key)) <= 60


def test_count_that_ran_out_is_taken_back_without_a_fault(limit: Limit) -> None:
    fixed_window.refund([limit])
    assert cache.get(limit.key) is None


async def test_count_does_not_stand_in_line_behind_a_redis_that_hangs(limit: Limit) -> None:
    over = Event()
    waiting = [fixed_window._threads.submit(over.wait, 30) for _ in range(8)]
    try:
        with pytest.raises(TimeoutError):
            await fixed_window.aconsume([limit])
    finally:
        over.set()
    assert all(each.result() for each in waiting)


async def test_running_turns_let_a_count_pass(limit: Limit, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person waits for the acknowledgement behind it; a turn's steps only for their own answer."""
    order: list[str] = []
    counted, over = fixed_window._consume, Event()

    def slowly(limits: tuple[Limit, ...]) -> object:
        over.wait(60)
        order.append("counted")
        return counted(limits)

    async def turn() -> None:
        use_low_priority_pool()
        asyncio.get_running_loop().call_later(0.05, over.set)
        await in_thread(order.append, "turn")

    monkeypatch.setattr(fixed_window, "_consume", slowly)
    count = asyncio.create_task(fixed_window.aconsume([limit]))
    await asyncio.sleep(0)
    await asyncio.create_task(turn())
    assert await count is None
    assert order == ["counted", "turn"]
