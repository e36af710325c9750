"""When does a worker count as deaf? When messages waited beside it, look after look, while it had nothing to do."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, field

import pytest

from silas_platform import listening
from silas_platform.celery import app
from silas_platform.listening import DEAF_LOOKS, Ear


@dataclass
class Desk:
    """What a worker and its broker say at each look."""

    waiting: int = 1
    busy: bool = False
    away: bool = False
    ear: Ear = field(init=False)

    def __post_init__(self) -> None:
        self.ear = Ear(self._waiting, lambda: self.busy)

    def _waiting(self) -> int:
        if self.away:
            raise ConnectionError
        return self.waiting

    def looks(self, times: int) -> list[bool]:
        return [self.ear.is_deaf() for _ in range(times)]


def test_worker_beside_which_messages_wait_is_deaf_after_some_looks() -> None:
    assert Desk().looks(DEAF_LOOKS) == [False] * (DEAF_LOOKS - 1) + [True]


@pytest.mark.parametrize("desk", [Desk(waiting=0), Desk(busy=True), Desk(away=True)])
def test_worker_without_work_or_with_enough_of_it_is_not_deaf(desk: Desk) -> None:
    assert not any(desk.looks(3 * DEAF_LOOKS))


def test_message_that_arrives_begins_the_count_anew() -> None:
    desk = Desk()
    desk.looks(DEAF_LOOKS - 1)
    desk.ear.hear()
    assert not any(desk.looks(DEAF_LOOKS - 1))


def test_deaf_worker_ends_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: told.append((pid, number)))
    desk = Desk()
    for _ in range(DEAF_LOOKS):
        assert told == []
        listening.end_if_deaf(desk.ear)
    assert told == [(os.getpid(), signal.SIGTERM)]


def test_message_that_no_worker_takes_is_counted_at_its_queue(database: None) -> None:
    before, elsewhere = listening.waiting_at("parse"), listening.waiting_at("upkeep")
    app.send_task("bus.drain", args=["parse"], queue="parse")
    assert listening.waiting_at("parse") == before + 1
    assert listening.waiting_at("upkeep") == elsewhere
