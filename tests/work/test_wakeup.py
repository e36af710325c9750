"""From a person's yes to a worker's first line: the poke, and what happens when it is lost."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

import pytest

from apps.bus.services import sweep
from apps.work.enums import WorkItemStatus
from kernel.tenancy import tenant_scope
from silas_platform.celery import app
from tests.factories.work import Desk


def waiting_pokes() -> int:
    with app.connection_for_read() as connection:
        return int(connection.default_channel.client.llen("celery"))


@pytest.fixture
def no_pokes(database: None) -> None:
    app.control.purge()


def test_approval_pokes_a_worker_after_its_commit(no_pokes: None, desk: Desk, approver: Any) -> None:
    item = desk.waiting()
    before = waiting_pokes()
    desk.decide(item, approver)
    assert (before, waiting_pokes()) == (0, 1)


def test_sweep_pokes_again_for_what_waits(no_pokes: None, desk: Desk, approver: Any) -> None:
    desk.approved(approver)
    app.control.purge()
    with tenant_scope(desk.tenant):
        sweep()
    assert waiting_pokes() == 1


def test_approval_stands_when_the_broker_is_gone(
    no_pokes: None, desk: Desk, approver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = desk.waiting()
    with monkeypatch.context() as patch:
        patch.setattr(app.conf, "broker_write_url", "redis+socket:///nowhere/redis.sock")
        desk.decide(item, approver)
    assert (desk.item(item.pk).approval_token is not None, waiting_pokes()) == (True, 0)


def test_celery_worker_carries_out_what_was_approved(no_pokes: None, desk: Desk, approver: Any) -> None:
    item = desk.approved(approver)
    argv = [sys.executable, "-m", "celery", "-A", "silas_platform", "worker", "--pool", "solo", "--loglevel", "ERROR"]
    worker = subprocess.Popen(argv, env=os.environ)
    try:
        deadline = time.monotonic() + 60
        while desk.item(item.pk).status != WorkItemStatus.DONE and time.monotonic() < deadline:
            time.sleep(0.2)
    finally:
        worker.terminate()
        worker.wait(20)
    assert (desk.item(item.pk).status, desk.order().data["note"]) == (WorkItemStatus.DONE, 50)
