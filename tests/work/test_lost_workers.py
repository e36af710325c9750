"""A worker killed with SIGKILL: the item is delivered again, and acts once or is reported uncertain."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from apps.bus.models import QueueMessage
from apps.bus.services import expire_leases
from apps.guard.models import ToolCall
from apps.work.enums import AttemptStatus, WorkItemStatus, WorkReason
from apps.work.models import Attempt, WorkItem
from kernel.tenancy import tenant_scope
from tests import nursery
from tests.factories.bus import let_leases_run_out
from tests.factories.skills import save_record
from tests.factories.work import NOTE, NOTED, Desk, make_desk
from tests.rivals import race

KillWhen = Callable[[Desk, Callable[[], bool]], None]
SLOW = "import time\ntime.sleep(60)\n"


def start_worker(desk: Desk, folder: Path) -> nursery.Started:
    with (folder / "worker.log").open("wb") as output:
        return nursery.spawn([sys.executable, "-m", "tests.work.lost", str(desk.tenant.pk)], output=output)


@pytest.fixture
def kill_when(tmp_path: Path) -> KillWhen:
    """Start a worker and kill it, with its child processes, at the moment that `seen` describes."""

    def kill(desk: Desk, seen: Callable[[], bool]) -> None:
        worker = start_worker(desk, tmp_path)
        try:
            deadline = time.monotonic() + 60
            while not _in_scope(desk, seen):
                assert worker.poll() is None, "the worker ended before it could be killed"
                assert time.monotonic() < deadline, "the moment never came"
                time.sleep(0.02)
        finally:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()

    return kill


def _in_scope(desk: Desk, seen: Callable[[], bool]) -> bool:
    with tenant_scope(desk.tenant):
        return seen()


def deliver_again(desk: Desk) -> None:
    let_leases_run_out(desk.tenant)
    with tenant_scope(desk.tenant):
        expire_leases()
    desk.work(consumer="second")


def outcome(desk: Desk, item: WorkItem) -> tuple[str, str, int]:
    ended = desk.item(item.pk)
    return ended.status, ended.reason, desk.order().revision - 1


def admitted() -> bool:
    return ToolCall.objects.filter(tool="act", state="admitted").exists()


def settled() -> bool:
    return ToolCall.objects.filter(tool="act", state="executed").exists()


def test_worker_killed_between_admit_and_settle_never_acts_twice(
    tenant: Any, tmp_path: Path, approver: Any, kill_when: KillWhen
) -> None:
    desk = make_desk(tenant, tmp_path, script=SLOW + NOTE, timeout=90)
    item = desk.approved(approver)
    kill_when(desk, admitted)
    deliver_again(desk)
    assert outcome(desk, item) == (WorkItemStatus.STUCK, WorkReason.UNCERTAIN, 0)


def test_worker_killed_after_settle_is_proved_done_without_a_second_effect(
    tenant: Any, tmp_path: Path, approver: Any, kill_when: KillWhen
) -> None:
    desk = make_desk(tenant, tmp_path, check="import time\ntime.sleep(2)\n" + NOTED)
    item = desk.approved(approver)
    kill_when(desk, settled)
    deliver_again(desk)
    assert outcome(desk, item) == (WorkItemStatus.DONE, "", 1)


def test_worker_killed_before_any_call_leaves_the_effect_to_the_next(
    desk: Desk, approver: Any, kill_when: KillWhen
) -> None:
    item = desk.approved(approver)
    kill_when(desk, lambda: QueueMessage.objects.filter(state="leased").exists())
    deliver_again(desk)
    status, _, effects = outcome(desk, item)
    assert (status, effects) in {(WorkItemStatus.DONE, 1), (WorkItemStatus.STUCK, 0)}


def test_uncertain_effect_that_the_checks_find_is_done(
    tenant: Any, tmp_path: Path, approver: Any, kill_when: KillWhen
) -> None:
    desk = make_desk(tenant, tmp_path, script=SLOW + NOTE, timeout=90)
    item = desk.approved(approver)
    kill_when(desk, admitted)
    save_record(tenant, "orders", "H-1", subject="C-1", total=120, note=50)
    deliver_again(desk)
    assert outcome(desk, item) == (WorkItemStatus.DONE, "", 1)


def test_lost_attempt_is_counted_and_marked(tenant: Any, tmp_path: Path, approver: Any, kill_when: KillWhen) -> None:
    desk = make_desk(tenant, tmp_path, script=SLOW + NOTE, timeout=90)
    item = desk.approved(approver)
    kill_when(desk, admitted)
    deliver_again(desk)
    with tenant_scope(tenant):
        found = list(Attempt.objects.filter(work_item=item).order_by("number").values_list("status", flat=True))
    assert found == [AttemptStatus.INTERRUPTED, AttemptStatus.FAILED]
    assert desk.item(item.pk).used.attempts == 2


def test_message_of_a_lost_worker_is_not_delivered_while_its_lease_stands(
    tenant: Any, tmp_path: Path, approver: Any, kill_when: KillWhen
) -> None:
    desk = make_desk(tenant, tmp_path, script=SLOW + NOTE, timeout=90)
    item = desk.approved(approver)
    kill_when(desk, admitted)
    desk.work(consumer="second")
    assert outcome(desk, item) == (WorkItemStatus.RUNNING, "", 0)


def script_runs() -> bool:
    """Whether a script of this process is running: a call is admitted well before its script starts."""
    return any(b"scripts/act.py" in arguments and os.getpid() in lineage for arguments, lineage in _processes())


def _processes() -> Iterator[tuple[bytes, list[int]]]:
    """For each process, its arguments and its ancestors."""
    parents = {int(path.parent.name): _parent(path) for path in Path("/proc").glob("[0-9]*/stat")}
    for process in parents:
        lineage = [process]
        while parents.get(lineage[-1]):
            lineage.append(parents[lineage[-1]])
        with suppress(OSError):
            yield Path(f"/proc/{process}/cmdline").read_bytes(), lineage


def _parent(stat: Path) -> int:
    try:
        return int(stat.read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _while_it_acts(desk: Desk, happens: Callable[[], None], lease_seconds: float = 120.0) -> None:
    """Carry the item out in this process; run `happens` once its script runs."""

    def rival() -> None:
        deadline = time.monotonic() + 30
        while not script_runs():
            assert time.monotonic() < deadline, "the script never ran"
            time.sleep(0.02)
        happens()

    for answer in race(lambda: desk.work(consumer="first", lease_seconds=lease_seconds), rival):
        assert answer is None, answer


def test_item_goes_on_when_the_database_dropped_its_connections_meanwhile(
    tenant: Any, tmp_path: Path, approver: Any, superuser_dsn: str
) -> None:
    desk = make_desk(tenant, tmp_path, script="import time\ntime.sleep(2)\n" + NOTE)
    item = desk.approved(approver)

    def drop() -> None:
        with psycopg.connect(superuser_dsn, autocommit=True) as insider:
            insider.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'silas_app'")

    _while_it_acts(desk, drop)
    assert outcome(desk, item) == (WorkItemStatus.DONE, "", 1)


def test_lease_is_renewed_again_after_a_renewal_that_failed(
    tenant: Any, tmp_path: Path, approver: Any, superuser_dsn: str
) -> None:
    desk = make_desk(tenant, tmp_path, script="import time\ntime.sleep(3)\n" + NOTE)
    desk.approved(approver)
    ends = []

    def until() -> None:
        with tenant_scope(tenant):
            ends.append(QueueMessage.objects.get(state="leased").leased_until)

    def refuse_for_a_while() -> None:
        with psycopg.connect(superuser_dsn, autocommit=True) as insider:
            insider.execute("REVOKE UPDATE ON bus_queuemessage FROM silas_app")
            try:
                time.sleep(0.6)
                until()
            finally:
                insider.execute("GRANT UPDATE ON bus_queuemessage TO silas_app")
        time.sleep(0.8)
        until()

    _while_it_acts(desk, refuse_for_a_while, lease_seconds=0.6)
    assert ends[0] < ends[1]


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.0, 0.1, 0.2, 0.3, 0.45])
def test_worker_killed_at_any_moment_never_acts_twice(tenant: Any, tmp_path: Path, approver: Any, delay: float) -> None:
    desk = make_desk(tenant, tmp_path)
    item = desk.approved(approver)
    worker = start_worker(desk, tmp_path)
    while not _in_scope(desk, lambda: QueueMessage.objects.filter(state="leased").exists()):
        if worker.poll() is not None:
            break
        time.sleep(0.01)
    time.sleep(delay)
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()
    deliver_again(desk)
    status, reason, effects = outcome(desk, item)
    assert (status, reason, effects) in {
        (WorkItemStatus.DONE, "", 1),
        (WorkItemStatus.STUCK, WorkReason.UNCERTAIN, 0),
    }
