"""A worker that is connected but receives nothing stops, so that its supervisor starts another."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from celery import Celery
from redis import Redis

from tests.faults.house import START_SECONDS, House, await_that, open_house

QUEUE = "upkeep"


@pytest.fixture
def empty_house() -> Iterator[House]:
    """With no other worker that would take what this one leaves."""
    var = Path(tempfile.mkdtemp(prefix="silas-deaf-"))
    opened = open_house(var, "http://127.0.0.1:9")
    try:
        yield opened
    finally:
        opened.stop()
        shutil.rmtree(var, ignore_errors=True)


def test_worker_beside_which_messages_wait_ends_itself_and_the_next_one_takes_them(empty_house: House) -> None:
    deaf = empty_house.start_worker()
    await_that(lambda: " ready." in empty_house.said_by(deaf), "the worker is ready")
    broker = empty_house.redis.url.replace("unix://", "redis+socket://", 1)
    with Celery(broker=broker, set_as_current=False) as outside:  # the platform's app stays everybody's
        assert outside.control.cancel_consumer(QUEUE, reply=True, limit=1, timeout=START_SECONDS)
        outside.send_task("bus.drain", args=[QUEUE], queue=QUEUE)
    await_that(lambda: deaf.poll() is not None, "the worker has ended")
    assert "worker_deaf" in empty_house.said_by(deaf)
    empty_house.start_worker()
    await_that(lambda: waiting(empty_house) == 0, "another one takes what waits")


def waiting(house: House) -> int:
    return int(Redis.from_url(house.redis.url).llen(QUEUE))
