"""Scripts that print garbage, hang, fork, fill memory or disk, in a real worker: each call fails, the worker lives."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psutil
import pytest

from apps.work.enums import WorkItemStatus
from apps.work.models import WorkItem
from silas_platform.celery import app
from silas_platform.up import processes
from silas_platform.up.environment import for_program
from tests import nursery
from tests.factories.tenants import make_member, make_tenant
from tests.factories.work import NOTE, Desk, make_desk
from tests.faults.house import await_that

HOSTILE = {
    "garbage": ("import os\nos.write(1, os.urandom(4096))", "garbage_output"),
    "hang": ("import time\ntime.sleep(600)", "timeout"),
    "forks": ("import os, time\nwhile True:\n  try: os.fork()\n  except OSError: time.sleep(0.01)", "process_limit"),
    "memory": ("held = []\nwhile True: held.append(bytearray(16 << 20))", "memory_limit"),
    "disk": ("with open('big', 'wb') as f:\n  while True: f.write(bytes(1 << 20))", "disk_limit"),
    "words": ("while True: print('x' * 10000)", "output_limit"),
}
PROCESSES = 2
FINAL = {WorkItemStatus.DONE, WorkItemStatus.STUCK, WorkItemStatus.BLOCKED, WorkItemStatus.FAILED}


@dataclass
class Ended:
    items: dict[str, WorkItem]
    effects: dict[str, int]
    good: WorkItem
    children: tuple[set[int], set[int]]


@pytest.fixture(scope="module")
def ended(migrated: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ended]:
    with django_db_blocker.unblock():
        app.control.purge()
        desks = {
            name: _desk(tmp_path_factory, script, timeout=1 if name == "hang" else 10)
            for name, (script, _) in HOSTILE.items()
        }
        env = for_program(os.environ, "worker")
        argv = ["-m", "celery", "-A", "silas_platform", "worker", "--concurrency", str(PROCESSES), "--without-mingle"]
        worker = nursery.spawn([sys.executable, *argv], env=env)
        try:
            yield _ended(desks, _desk(tmp_path_factory, NOTE), psutil.Process(worker.pid))
        finally:
            processes.end([psutil.Process(worker.pid)], grace=15)
            processes.end_group(worker)


def _desk(folders: pytest.TempPathFactory, script: str, *, timeout: int = 10) -> Desk:
    return make_desk(make_tenant(), folders.mktemp("skill"), script=script, timeout=timeout)


def _ended(desks: dict[str, Desk], good: Desk, worker: psutil.Process) -> Ended:
    await_that(lambda: len(worker.children()) == PROCESSES, "the worker has its processes")
    before = _pids(worker)
    ids = {name: desk.approved(make_member(desk.tenant, "approver")).pk for name, desk in desks.items()}
    for name, desk in desks.items():
        await_that(lambda: desk.item(ids[name]).status in FINAL, f"{name} ends")  # noqa: B023  (asked at once)
    last = good.approved(make_member(good.tenant, "approver")).pk
    await_that(lambda: good.item(last).status in FINAL, "the good one ends")
    return Ended(
        items={name: desk.item(ids[name]) for name, desk in desks.items()},
        effects={name: desk.order().revision - 1 for name, desk in desks.items()},
        good=good.item(last),
        children=(before, _pids(worker)),
    )


def _pids(worker: psutil.Process) -> set[int]:
    return {child.pid for child in worker.children()}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_script_fails_with_its_reason(ended: Ended, name: str) -> None:
    item = ended.items[name]
    assert item.status == WorkItemStatus.STUCK, item.last_error
    assert HOSTILE[name][1] in item.last_error, item.last_error


def test_hostile_scripts_change_nothing(ended: Ended) -> None:
    assert set(ended.effects.values()) == {0}


def test_worker_lives_and_carries_out_the_next_item(ended: Ended) -> None:
    before, after = ended.children
    assert ended.good.status == WorkItemStatus.DONE
    assert before == after
