"""A worker that begins: while PostgreSQL or Redis is away it waits for them, as one that runs already does; and it has
no thread beside the one that forks its children."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.house import House, Web, await_that

SERVERS: dict[str, tuple[Callable[[House], None], Callable[[House], None], str]] = {
    "postgres": (House.kill_database, House.start_database, "worker_waits_for_database"),
    "redis": (House.kill_redis, House.start_redis, "Cannot connect"),
}


@pytest.mark.parametrize("server", SERVERS)
def test_worker_that_begins_while_a_server_is_away_is_ready_when_it_is_back(
    house: House, web: Web, server: str
) -> None:
    take_away, bring_back, complaint = SERVERS[server]
    take_away(house)
    begun = house.start_worker()
    try:
        await_that(lambda: complaint in house.said_by(begun), "it says what it waits for")
    finally:
        bring_back(house)
    await_that(lambda: " ready." in house.said_by(begun), "the worker is ready")
    house.kill(begun)
    await_that(web.is_ready, "the web process is ready again")


def test_worker_forks_its_children_from_a_process_without_threads(house: House) -> None:
    """A child would inherit, held for ever, what a thread held when it was forked."""
    begun = house.start_worker()
    await_that(lambda: " ready." in house.said_by(begun), "the worker is ready")
    threads = [each.name for each in Path(f"/proc/{begun.pid}/task").iterdir()]
    house.kill(begun)
    assert threads == [str(begun.pid)]
