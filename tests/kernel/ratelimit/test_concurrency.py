"""Concurrency limits count over all processes, are never exceeded, and free the places of a process that died."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from kernel.ratelimit import concurrency, fixed_window


@pytest.fixture
def place() -> str:
    return f"test:{uuid4()}"


def let_run_out(place: str, holder: str) -> None:
    """As if its process had been dead for longer than a seat is kept."""
    fixed_window.redis_client().zadd(f"silas.seats:{place}", {holder: 1})


async def test_rivals_get_no_more_seats_than_there_are(place: str) -> None:
    seated = await asyncio.gather(*[concurrency.acquire(place, f"w{number}", maximum=3) for number in range(12)])
    assert seated.count(True) == 3


async def test_seat_may_be_taken_again_by_its_holder_and_once_left_by_another(place: str) -> None:
    assert [await concurrency.acquire(place, "a", maximum=1) for _ in range(2)] == [True, True]
    assert await concurrency.acquire(place + "2", "b", maximum=1)
    assert not await concurrency.acquire(place, "b", maximum=1)
    await concurrency.release(place, "a")
    assert await concurrency.acquire(place, "b", maximum=1)


async def test_seat_of_a_process_that_died_runs_out(place: str) -> None:
    await concurrency.acquire(place, "dead", maximum=1)
    let_run_out(place, "dead")
    assert await concurrency.acquire(place, "b", maximum=1)


async def test_seat_that_is_renewed_is_kept(place: str) -> None:
    await concurrency.acquire(place, "a", maximum=1)
    let_run_out(place, "a")
    await concurrency.renew({"a": place})
    assert not await concurrency.acquire(place, "b", maximum=1)


async def test_places_nobody_renews_leave_redis_by_themselves(place: str) -> None:
    await concurrency.acquire(place, "a", maximum=1)
    assert 0 < fixed_window.redis_client().ttl(f"silas.seats:{place}") <= concurrency.LEASE_SECONDS
