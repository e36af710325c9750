"""What a worker does around each task, and at its end."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time

import pytest
from celery.signals import task_postrun, worker_shutdown
from django.db import connection

import silas_platform.celery
from apps.bus import threads
from apps.bus.tasks import release_leases
from silas_platform.telemetry import instruments, traces
from silas_platform.up.programs import AS_ROOT

_WARNS = """
import os, warnings
from celery import platforms
os.getuid = lambda: 0
platforms.check_privileges([])
warnings.warn(platforms.SecurityWarning(platforms.ASSUMING_ROOT))
"""


def test_database_line_is_given_back_after_each_task(database: None) -> None:
    """Kept, one that a restarted database has dropped would break every task that follows."""
    connection.ensure_connection()
    task_postrun.send(sender=release_leases)
    assert connection.connection is None


def test_worker_that_ends_takes_nothing_apart() -> None:
    """Else its interpreter needs a second of processor time for that, and many seconds on a busy machine."""
    try:
        worker_shutdown.send(sender=None)
        assert gc.isenabled() is False
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
        gc.enable()


def test_spans_of_deliveries_in_threads_are_sent_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[str] = []

    def deliver() -> None:
        time.sleep(0.3)
        happened.append("delivered")

    delivery = threading.Thread(target=deliver)
    monkeypatch.setattr(threads, "_running", {delivery})
    monkeypatch.setattr(traces, "stop", lambda: happened.append("sent"))
    monkeypatch.setattr(instruments, "stop", lambda: None)
    delivery.start()
    try:
        silas_platform.celery._end_threads_and_send_last_telemetry()
    finally:
        threads._stopping.clear()
    assert happened == ["delivered", "sent"]


def test_worker_started_here_is_spared_the_warning_of_root_and_no_other() -> None:
    told = [
        subprocess.run([sys.executable, *quiet, "-c", _WARNS], capture_output=True, text=True, check=True).stderr
        for quiet in ((), AS_ROOT)
    ]
    assert ["superuser" in said for said in told] == [True, False]
    assert all("potential security issue" in said for said in told)
