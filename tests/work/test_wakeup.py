"""From a person's approval to a worker's first action: the wake-up, and what happens when it is lost."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

from apps.bus.wakeup import wake
from apps.bus.workers import Worker
from apps.sessions.models import ChatSession
from apps.work.enums import WorkItemStatus, WorkReason
from apps.work.models import Course, WorkItem
from kernel.tenancy import tenant_scope
from silas_platform.celery import app
from silas_platform.up.environment import for_program
from tests import nursery
from tests.factories.bus import forget_pokes, pokes
from tests.factories.work import Desk, make_desk


@pytest.fixture
def no_pokes(database: None, superuser_dsn: str) -> None:
    """Remove what earlier tests queued: a real worker would carry it out."""
    with psycopg.connect(superuser_dsn, autocommit=True) as server:
        server.execute(
            "UPDATE bus_queuemessage SET state = 'dead', leased_until = NULL, finished_at = now()"
            " WHERE finished_at IS NULL"
        )
    forget_pokes()


def test_approval_pokes_a_worker_after_its_commit(no_pokes: None, desk: Desk, approver: Any) -> None:
    item = desk.waiting()
    before = pokes()
    desk.decide(item, approver)
    assert before == 0
    assert pokes() == 1


def test_approval_stands_when_the_broker_is_gone(
    no_pokes: None, desk: Desk, approver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = desk.waiting()
    with monkeypatch.context() as patch:
        patch.setattr(app.conf, "broker_write_url", "redis+socket:///nowhere/redis.sock")
        desk.decide(item, approver)
    assert desk.item(item.pk).approval_token is not None
    assert pokes() == 0


def worker_until(desk: Desk, item: WorkItem, status: WorkItemStatus) -> None:
    """Run a real worker, in its own database role, until the item has this status."""
    argv = [sys.executable, "-m", "celery", "-A", "silas_platform", "worker", "--pool", "solo", "--loglevel", "ERROR"]
    worker = nursery.start(argv, env={**for_program(os.environ, "worker"), "PYTHONFAULTHANDLER": "1"})
    try:
        deadline = time.monotonic() + 300
        while desk.item(item.pk).status != status and time.monotonic() < deadline:
            time.sleep(0.5)
            wake(Worker.WORK)
    finally:
        worker.terminate()
        try:
            worker.wait(60)
        finally:
            worker.send_signal(signal.SIGABRT)  # one that does not end says where it stands
            worker.wait()


def test_celery_worker_carries_out_what_was_approved(no_pokes: None, desk: Desk, approver: Any) -> None:
    item = desk.approved(approver)
    worker_until(desk, item, WorkItemStatus.DONE)
    assert desk.item(item.pk).status == WorkItemStatus.DONE
    assert desk.order().data["note"] == 50


def test_celery_worker_climbs_every_rung_to_a_person(
    no_pokes: None, tenant: Any, tmp_path: Path, approver: Any
) -> None:
    """Advice twice, no other plan, a person: with only a worker's rights."""
    desk = make_desk(tenant, tmp_path, check="print('never')")
    item = desk.approved(approver)
    worker_until(desk, item, WorkItemStatus.STUCK)
    with tenant_scope(tenant):
        wanted = ChatSession.objects.get(pk=item.session_id).wanted_person_at
        calls = Course.objects.get(work_item=item).used.planner_calls
    found = (desk.item(item.pk).status, desk.item(item.pk).reason, calls, wanted is not None)
    assert found == (WorkItemStatus.STUCK, WorkReason.VERIFICATION, 3, True)
