"""The Celery application. Celery delivers wake-ups; the rows in `bus` are the truth.

A worker serves either the queue `trusted`, with the signing key and the web processes' database role, or any of
`work`, `parse` and `upkeep`, with neither. A worker that holds more or less than its queues need does not start.
"""

from __future__ import annotations

import gc
import logging
import os
import time
from typing import Any

import psycopg
from celery import Celery
from celery.signals import (
    celeryd_init,
    setup_logging,
    task_postrun,
    task_prerun,
    worker_before_create_process,
    worker_shutdown,
)
from psycopg.pq import PGconn, Ping

from apps.bus import deadlines
from apps.bus.enums import Worker

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "silas_platform.settings.local")

_log = logging.getLogger(__name__)
DATABASE_PATIENCE_SECONDS = 120.0

app = Celery("silas_platform")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.steps["consumer"].update({"silas_platform.listening:Listening", "silas_platform.listening:Ending"})


@setup_logging.connect
def _log_like_web(**_: Any) -> None:
    """Celery would replace our handlers; with a receiver here it leaves Django's settings (SILAS_LOG) alone."""


@celeryd_init.connect
def _refuse_wrong_rights(options: dict[str, Any], **_: Any) -> None:
    """A worker that handles bytes from outside must not be able to mint approvals, by key or by SQL (architecture).

    Celery writes down what a receiver raises and starts all the same; only an exit ends the start.
    """
    from django.core.exceptions import ImproperlyConfigured

    from silas_platform.checks import (
        refuse_mixed_queues,
        refuse_signing_key,
        refuse_without_root,
        refuse_without_signing_key,
    )

    given = options.get("queues") or list(app.conf.task_queues)
    queues = given.split(",") if isinstance(given, str) else list(given)
    try:
        refuse_mixed_queues(queues)
        refuse_without_root()
        if queues == [Worker.TRUSTED]:
            refuse_without_signing_key()
        else:
            refuse_signing_key()
            _refuse_wide_role_patiently()
    except (ImproperlyConfigured, psycopg.Error) as refusal:
        raise SystemExit(str(refusal)) from None


def _refuse_wide_role_patiently() -> None:
    """A database that is away for a moment is waited for, as the broker is; not one that is there and lets nobody in
    with this address."""
    from silas_platform.checks import refuse_wide_role
    from silas_platform.settings import env

    give_up, refusals = time.monotonic() + DATABASE_PATIENCE_SECONDS, 0
    while True:
        try:
            return refuse_wide_role()
        except psycopg.OperationalError as away:
            # Between the two questions it may have come back: only the second refusal is meant.
            refusals += PGconn.ping(env.secret("DATABASE_URL").encode()) == Ping.OK
            if refusals > 1 or time.monotonic() >= give_up:
                raise
            _log.warning("worker_waits_for_database: %s", away)
        time.sleep(1)


@worker_before_create_process.connect
def _share_memory_with_children(**_: Any) -> None:
    """Take what was imported out of the garbage collector's sight: a collection writes to each object that it visits,
    and every page that a child writes to is copied for it."""
    gc.freeze()


@worker_shutdown.connect
def _leave_without_tidying(**_: Any) -> None:
    """Everything is done and given back by now. Taking a few hundred thousand objects apart one by one would cost a
    second of processor time, most of a worker's end, and many seconds on a busy machine."""
    gc.disable()
    gc.freeze()


@task_prerun.connect
def _begin_in_time(**_: Any) -> None:
    """Whatever a child is woken for, it is over by its deadline or the child is ended."""
    deadlines.set_deadline()


@task_postrun.connect
def _ended_in_time(**_: Any) -> None:
    deadlines.clear_deadline()


@task_postrun.connect
def _give_line_back(**_: Any) -> None:
    """To the pool, which throws a broken one away: kept between tasks, one that a restarted database has dropped would
    break every task after it. (With CELERY_DB_REUSE_MAX Celery keeps the pool, and with it the line.)"""
    from django.db import connection

    connection.close()
