"""A worker's child that hangs is killed by its parent, and another child carries out what it held, once."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from celery import Celery

from kernel import fault_points
from kernel.fault_points import Action
from tests import nursery
from tests.faults.house import ROOT, House, await_that, open_house

DEADLINE_SECONDS, FREE_SECONDS = 3, 12


@pytest.fixture
def hanging_house() -> Iterator[House]:
    var = Path(tempfile.mkdtemp(prefix="silas-hung-"))
    opened = open_house(var, "http://127.0.0.1:9", SILAS_DELIVERY_SECONDS=str(DEADLINE_SECONDS))
    try:
        yield opened
    finally:
        opened.stop()
        shutil.rmtree(var, ignore_errors=True)


def furnished(house: House) -> dict[str, str]:
    argv = [sys.executable, "-m", "tests.faults.dispatcher"]
    done = nursery.run(argv, cwd=ROOT, env=house.env(), capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def sessions(house: House) -> list[dict[str, Any]]:
    return house.rows(
        "SELECT id::text, status, terminal_reason, root_id::text AS root, ended_at, admitted_at"
        " FROM autonomy_autonomoussession ORDER BY queued_at"
    )


@pytest.mark.parametrize(("point", "hang"), [("bus.leased", Action.HANG), ("autonomy.begun", Action.STOP)])
def test_hung_child_is_killed_and_its_work_is_done_once_by_another(
    hanging_house: House, point: str, hang: Action
) -> None:
    house = hanging_house
    made = furnished(house)
    faults = house.faults_of("worker")
    fault_points.plant(faults, point, hang)
    worker = house.start_worker()
    await_that(lambda: fault_points.processes_that_took(faults, point), "a child hangs")
    hung_at, (child,) = time.monotonic(), fault_points.processes_that_took(faults, point)
    await_that(lambda: "worker_child_overdue" in house.said_by(worker), "its parent noticed")
    await_that(lambda: not psutil.pid_exists(child), "the child is gone")
    await_that(lambda: over(house, made["first"]) or taken_again(house, child), "another child took it")
    took = time.monotonic() - hung_at
    with Celery(broker=house.redis.url.replace("unix://", "redis+socket://", 1), set_as_current=False) as outside:
        await_that(lambda: all_done(house, outside), "every session is over")
    rows = sessions(house)
    assert took < DEADLINE_SECONDS + FREE_SECONDS
    assert worker.poll() is None
    assert house.said_by(worker).count("worker_child_overdue") == 1
    completed = [row for row in rows if row["status"] == "completed"]
    assert {row["root"] or row["id"] for row in completed} == {made["first"], made["second"]}
    assert len(completed) == 2
    lost = [row["terminal_reason"] for row in rows if row["status"] != "completed"]
    assert lost == ([] if point == "bus.leased" else ["worker_lost"])
    left = "SELECT count(*) AS n FROM bus_queuemessage WHERE queue = 'executor' AND state <> 'acked'"
    assert house.rows(left) == [{"n": 0}]
    twice = house.rows("SELECT root_id, digest FROM autonomy_finding GROUP BY root_id, digest HAVING count(*) > 1")
    assert twice == []
    notices = house.rows("SELECT root_id, count(*) AS n FROM autonomy_notification GROUP BY root_id")
    assert [row["n"] for row in notices] == [1, 1]


def over(house: House, session_id: str) -> bool:
    return any(row["id"] == session_id and row["ended_at"] for row in sessions(house))


def taken_again(house: House, child: int) -> bool:
    rows = house.rows("SELECT consumer FROM bus_queuemessage WHERE kind = 'autonomous_session' AND state = 'leased'")
    return any(not row["consumer"].endswith(f":{child}") for row in rows)


def all_done(house: House, outside: Any) -> bool:
    """A wake-up, which beat would send, lets in what waits."""
    outside.send_task("bus.drain", args=["upkeep"], queue="upkeep")
    time.sleep(0.5)
    rows = sessions(house)
    return all(row["ended_at"] for row in rows) and sum(row["status"] == "completed" for row in rows) == 2
