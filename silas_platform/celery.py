"""The Celery application. Celery delivers wake-ups; the rows in `bus` are the truth.

A worker serves either the queue `trusted`, with the signing key and the web processes' database role, or any of
`work`, `parse` and `upkeep`, with neither. A worker that holds more or less than its queues need does not start.
"""

from __future__ import annotations

import gc
import logging
import os
import time
from contextlib import suppress
from typing import Any

import psycopg
from billiard.util import set_pdeathsig
from celery import Celery
from celery.signals import (
    celeryd_init,
    setup_logging,
    task_postrun,
    task_prerun,
    worker_before_create_process,
    worker_process_init,
    worker_process_shutdown,
    worker_ready,
    worker_shutdown,
)
from psycopg.pq import PGconn, Ping

from apps.bus import deadlines
from apps.bus.workers import Worker

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "silas_platform.settings.local")

_log = logging.getLogger(__name__)
DATABASE_WAIT_SECONDS = 120.0

app = Celery("silas_platform")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.steps["consumer"].add("silas_platform.worker_watchdog:Watchdog")


@setup_logging.connect
def _log_like_web(**_: object) -> None:
    """Keep Django's logging settings (SILAS_LOG): with a receiver for this signal Celery does not replace handlers."""


@celeryd_init.connect
def _refuse_wrong_rights(options: dict[str, Any], **_: object) -> None:
    """Exit when the worker has more or fewer rights than its queues need, or is too old for the database's schema.

    A worker that handles outside bytes must not be able to create approvals, by key or by SQL. Celery only logs what a
    receiver raises and starts anyway, so this exits.
    """
    from django.core.exceptions import ImproperlyConfigured

    from kernel.tenancy import refuse_closed_companies
    from silas_platform.checks import refuse_wrong_keys

    given = options.get("queues") or list(app.conf.task_queues)
    queues = given.split(",") if isinstance(given, str) else list(given)
    refuse_closed_companies()
    try:
        refuse_wrong_keys(queues)
        _check_database_with_retry(trusted=queues == [Worker.TRUSTED])
    except (ImproperlyConfigured, psycopg.Error) as refusal:
        # Celery only logs what a receiver raises, and starts anyway.
        raise SystemExit(str(refusal)) from None


def _check_database_with_retry(*, trusted: bool) -> None:
    """Check schema and role, waiting for a database that is down, but not for one that rejects this login."""
    from silas_platform.checks import refuse_newer_schema, refuse_wide_role
    from silas_platform.settings import env

    deadline, refusals = time.monotonic() + DATABASE_WAIT_SECONDS, 0
    while True:
        try:
            refuse_newer_schema()
            if not trusted:
                refuse_wide_role()
            return
        except psycopg.OperationalError as error:
            # The server may have come up between the connection and the ping, so only the second refusal counts.
            refusals += PGconn.ping(env.text("DATABASE_URL").encode()) == Ping.OK
            if refusals > 1 or time.monotonic() >= deadline:
                raise
            _log.warning("worker_waits_for_database: %s", error)
        time.sleep(1)


@worker_before_create_process.connect
def _share_memory_with_children(**_: object) -> None:
    """Import what every child will need, and take it out of the garbage collector's sight: a collection writes to each
    object that it visits, and every page that a child writes to is copied for it."""
    import psycopg_pool  # noqa: F401  (with the first connection)

    from silas_platform.telemetry import traces  # noqa: F401  (at the start of each child)

    # Each child sets its parent-death signal, for which cffi loads a parser of C: 6 MB. There is no signal -1, so that
    # this sets none.
    with suppress(OSError):
        set_pdeathsig(-1)
    gc.freeze()


@worker_process_init.connect
def _start_telemetry(**_: object) -> None:
    """Start exporters in each child, after the fork: their threads do not survive it."""
    from silas_platform.telemetry import instruments, traces

    instruments.start("worker")
    traces.start("worker")


@worker_ready.connect
def _start_telemetry_of_threads(sender: Any, **_: object) -> None:
    """A worker of threads has no children: it starts its exporters itself."""
    if not type(sender.pool).__module__.endswith("prefork"):
        _start_telemetry()


@worker_process_shutdown.connect
@worker_shutdown.connect
def _end_threads_and_send_last_telemetry(**_: object) -> None:
    """Wait for deliveries in threads, which record their spans when they end, then send what is left: a child ends
    without `atexit`."""
    from apps.bus import threads
    from silas_platform.telemetry import instruments, traces

    threads.wait_for_threads()
    traces.stop()
    instruments.stop()


@worker_shutdown.connect
def _skip_final_collection(**_: object) -> None:
    """Skip garbage collection at exit: freeing some hundred thousand objects costs a second of processor time, which is
    most of a worker's shutdown."""
    gc.disable()
    gc.freeze()


@task_prerun.connect
def _set_deadline(**_: object) -> None:
    """Give every task a deadline, after which the parent kills the child."""
    deadlines.set_deadline()


@task_postrun.connect
def _clear_deadline_and_return_connection(**_: object) -> None:
    """Return the connection to its pool, which drops a broken one: kept between tasks, one that a restarted database
    has dropped would break every task after it. (With CELERY_DB_REUSE_MAX Celery keeps it open.)"""
    from django.db import connection

    deadlines.clear_deadline()
    connection.close()
