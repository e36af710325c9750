"""What a worker does around each task."""

from __future__ import annotations

from celery.signals import task_postrun
from django.db import connection

import silas_platform.celery  # noqa: F401  (connects the receivers)
from apps.bus.tasks import sweep


def test_database_line_is_given_back_after_each_task(database: None) -> None:
    """Kept, one that a restarted database has dropped would break every task that follows."""
    connection.ensure_connection()
    task_postrun.send(sender=sweep)
    assert connection.connection is None
