"""The trusted worker of `make run` is beat too."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from silas_platform import worker
from silas_platform.up.environment import ROOT, for_program
from silas_platform.worker_watchdog import count_waiting
from tests import nursery
from tests.platform.runs import eventually

pytestmark = pytest.mark.slow

TRUSTED = ["trusted", "--queues", "trusted", "--threads", "1", "--beat"]
WITHOUT_SCHEDULE = f"""
import sys
from silas_platform import beat, worker
beat.app.conf.beat_schedule = {{"no entry": 7}}
sys.exit(worker.main({TRUSTED}))
"""
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start(database: None) -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def start(*arguments: str) -> subprocess.Popen[bytes]:
        env = {**for_program(os.environ, "trusted"), "CELERY_SKIP_CHECKS": "1"}
        started.append(nursery.start([sys.executable, *arguments], env=env, cwd=ROOT))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait(30)


def test_worker_with_beat_wakes_every_other_kind_of_worker(start: Start) -> None:
    before = {queue: count_waiting(queue) for queue in ("work", "parse", "upkeep")}
    start("-m", "silas_platform.worker", *TRUSTED)
    for queue, count in before.items():
        assert eventually(lambda queue=queue, count=count: count_waiting(queue) > count), queue


def test_worker_whose_beat_fails_ends(start: Start) -> None:
    process = start("-c", WITHOUT_SCHEDULE)
    assert process.wait(60) == 0


def test_worker_that_forks_is_refused_as_beat(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        worker.main(["worker", "--processes", "2", "--beat"])
    assert "must not fork" in capsys.readouterr().err
