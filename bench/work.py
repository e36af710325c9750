"""Measure the platform's overhead in work: 200 approved tasks with a check each on two workers, beside their sandboxes.

The baseline runs the very same scripts and checks in the same sandboxes, two at a time, with nothing of ours around
them. A task's way is lease, begin, model run, admission, script, settlement, check, end: each committed with fsync.
Promised: at most three times the baseline's wall time.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.report import Row
from bench.stage import Stage, stage

ROUNDS, A_ROUND, WARM_UP, BOUND = 4, 50, 8, 3.0
TASKS = ROUNDS * A_ROUND
PATIENCE_SECONDS = 300
WORKERS = ["worker", "--concurrency", "2", "--loglevel", "ERROR", "--without-gossip", "--without-mingle"]


def run() -> list[Row]:
    with stage() as ready, tempfile.TemporaryDirectory() as folder:
        desk, approver = _desk(Path(folder))
        with _workers(ready) as workers:
            _approve(desk, approver, range(WARM_UP))
            _until_done(desk, WARM_UP)
            rounds = [
                _round(desk, approver, workers, first, Path(folder) / "test-desk")
                for first in range(WARM_UP, WARM_UP + TASKS, A_ROUND)
            ]
    took, bare = (sum(seconds) for seconds in zip(*rounds, strict=True))
    ratio = took / bare
    name = f"{TASKS} approved tasks with a check each, 2 workers"
    return [Row(name, took, "s", "their sandboxes alone, two at a time", bare, ratio, f"≤ {BOUND:g}", ratio <= BOUND)]


def _round(desk: Any, approver: Any, workers: _Group, first: int, skill: Path) -> tuple[float, float]:
    """Seconds of some tasks, and of their sandboxes alone: both in turn, so that a busy moment meets both. Neither time
    holds the approving, and the workers stand still for the baseline."""
    workers.send_signal(signal.SIGSTOP)
    _approve(desk, approver, range(first, first + A_ROUND))
    started = time.monotonic()
    workers.send_signal(signal.SIGCONT)
    _until_done(desk, first + A_ROUND)
    took = time.monotonic() - started
    workers.send_signal(signal.SIGSTOP)
    bare = _bare(skill)
    workers.send_signal(signal.SIGCONT)
    return took, bare


def _desk(folder: Path) -> tuple[Any, Any]:
    """A customer with an order of their own for each task: no task waits for another one's."""
    from tests.factories.skills import save_record
    from tests.factories.tenants import make_member, make_tenant
    from tests.factories.work import make_desk

    tenant = make_tenant()
    desk = make_desk(tenant, folder)
    for number in range(WARM_UP + TASKS):
        save_record(tenant, "orders", f"B-{number}", subject=f"B-{number}", total=120)
    return desk, make_member(tenant, "approver")


def _approve(desk: Any, approver: Any, numbers: range) -> None:
    from tests.factories.work import note

    for number in numbers:
        proposal = desk.propose(note(50, f"B-{number}"), subject=f"B-{number}")
        desk.decide(desk.item(proposal.work_item_id), approver)


@contextlib.contextmanager
def _workers(ready: Stage) -> Iterator[_Group]:
    from silas_platform.up.environment import for_program

    env = for_program({**os.environ, **ready.env}, "worker")
    argv = [sys.executable, "-m", "celery", "-A", "silas_platform", "--quiet", *WORKERS]
    process = subprocess.Popen(argv, env=env, start_new_session=True)
    try:
        yield _Group(process)
    finally:
        os.killpg(process.pid, signal.SIGCONT)
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:  # what was measured is measured; who was stopped in the middle may hang
            os.killpg(process.pid, signal.SIGKILL)


class _Group:
    """The workers and all that they started."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def send_signal(self, number: signal.Signals) -> None:
        os.killpg(self._process.pid, number)


def _until_done(desk: Any, count: int) -> None:
    from apps.work.models import WorkItem
    from kernel.tenancy import tenant_scope

    give_up = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < give_up:
        with tenant_scope(desk.tenant):
            states = list(WorkItem.objects.filter(type="task").values_list("status", flat=True))
        if states.count("done") >= count:
            return
        time.sleep(0.05)
    raise RuntimeError(f"not done in time: { {state: states.count(state) for state in set(states)} }")


# -- the same sandboxes alone ------------------------------------------------------------------------------------------


def _bare(skill: Path) -> float:
    """Seconds for the scripts and checks of one round, two at a time."""
    skill.chmod(0o755)
    started = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda number: _task(skill, number), range(A_ROUND)))
    return time.monotonic() - started


def _task(skill: Path, number: int) -> None:
    from kernel.canonical import canonical_bytes
    from sandbox import SandboxSpec
    from sandbox import run as sandboxed

    row = {"key": f"B-{number}", "subject": f"B-{number}", "revision": 1, "data": {"total": 120, "note": 50}}
    call = {"tool": "act", "args": {"order": f"B-{number}", "note": 50}}
    records = {"orders.json": canonical_bytes([row])}
    acts = SandboxSpec(
        ["python3", "-I", "-S", "/sandbox/skill/scripts/act.py"],
        work={"call.json": canonical_bytes(call)},
        read_only={"skill": skill, "records": records},
    )
    checks = SandboxSpec(
        shlex.split("python3 /sandbox/skill/checks/done.py"),
        read_only={"skill": skill, "records": records, "call": {"calls.json": canonical_bytes([call])}},
        disk_mb=16,
    )
    done = [sandboxed(spec) for spec in (acts, checks)]
    assert [result.ok for result in done] == [True, True] and done[1].stdout == "done\n", done
