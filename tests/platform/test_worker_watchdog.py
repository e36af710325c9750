"""A worker is deaf when messages waited at several checks in a row while it was idle."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, field

import psycopg
import pytest

from silas_platform import worker_watchdog
from silas_platform.celery import app
from silas_platform.worker_watchdog import MAX_MISSED_CHECKS, BrokerWatch
from tests.ports import free_port


@dataclass
class Desk:
    """What a worker and its broker say at each look."""

    waiting: int = 1
    busy: bool = False
    away: bool = False
    watch: BrokerWatch = field(init=False)

    def __post_init__(self) -> None:
        self.watch = BrokerWatch(self._waiting, lambda: self.busy)

    def _waiting(self) -> int:
        if self.away:
            raise ConnectionError
        return self.waiting

    def looks(self, times: int) -> list[bool]:
        return [self.watch.is_deaf() for _ in range(times)]


def test_worker_beside_which_messages_wait_is_deaf_after_some_looks() -> None:
    assert Desk().looks(MAX_MISSED_CHECKS) == [False] * (MAX_MISSED_CHECKS - 1) + [True]


@pytest.mark.parametrize("desk", [Desk(waiting=0), Desk(busy=True), Desk(away=True)])
def test_worker_without_work_or_with_enough_of_it_is_not_deaf(desk: Desk) -> None:
    assert not any(desk.looks(3 * MAX_MISSED_CHECKS))


def test_message_that_arrives_begins_the_count_again() -> None:
    desk = Desk()
    desk.looks(MAX_MISSED_CHECKS - 1)
    desk.watch.reset()
    assert not any(desk.looks(MAX_MISSED_CHECKS - 1))


def test_deaf_worker_ends_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda *signalled: told.append(signalled))
    desk = Desk()
    for _ in range(MAX_MISSED_CHECKS):
        assert told == []
        worker_watchdog.stop_if_deaf(desk.watch)
    assert told == [(os.getpid(), signal.SIGTERM)]


def test_worker_that_is_too_old_for_the_schema_ends_itself(monkeypatch: pytest.MonkeyPatch, database: None) -> None:
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda *signalled: told.append(signalled))
    worker_watchdog.stop_if_outdated()
    assert told == []
    monkeypatch.setattr(worker_watchdog, "fault_at", lambda address: "E_DB_NEWER: …")
    worker_watchdog.stop_if_outdated()
    assert told == [(os.getpid(), signal.SIGTERM)]


def test_worker_goes_on_while_the_database_does_not_answer(monkeypatch: pytest.MonkeyPatch, database: None) -> None:
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda *signalled: told.append(signalled))
    begun = time.monotonic()
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"]) as owner:
        owner.execute("LOCK TABLE django_migrations IN ACCESS EXCLUSIVE MODE")
        owner.execute("SET LOCAL idle_in_transaction_session_timeout = '10s'")
        worker_watchdog.stop_if_outdated()
        assert time.monotonic() - begun < 8
        owner.rollback()
    assert told == []


def test_worker_goes_on_while_the_database_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda *signalled: told.append(signalled))
    monkeypatch.setenv("DATABASE_URL", f"postgresql://silas_work@127.0.0.1:{free_port()}/silas")
    worker_watchdog.stop_if_outdated()
    assert told == []


def test_message_that_no_worker_takes_is_counted_at_its_queue(database: None) -> None:
    before, elsewhere = worker_watchdog.count_waiting("parse"), worker_watchdog.count_waiting("upkeep")
    app.send_task("bus.drain", args=["parse"], queue="parse")
    assert worker_watchdog.count_waiting("parse") == before + 1
    assert worker_watchdog.count_waiting("upkeep") == elsewhere
