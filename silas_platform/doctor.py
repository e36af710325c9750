"""Examine a running installation for `manage.py doctor`.

Each examination yields findings about one subject and changes nothing except one key of the cache. An examination that
cannot be made is a finding itself, so one fault hides no other.
"""

from __future__ import annotations

import json
import shutil
import smtplib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from pathlib import Path

from django.conf import settings
from django.core.cache import cache
from django.core.checks import ERROR, run_checks
from django.db import connection, connections
from django.db.migrations.executor import MigrationExecutor

from apps.bus import queries as bus
from apps.bus.workers import Worker
from apps.tenants import policy_seals
from apps.tenants.enums import PolicyKind
from apps.tenants.queries import all_tenants
from kernel import trust
from kernel.clock import now
from kernel.redis_servers import connect, name_of
from kernel.tenancy import INSTALLATION, tenant_scope
from kernel.tenancy.replica import REPLICA
from sandbox.runner import backend
from silas_platform import __version__
from silas_platform.backup.manifest import LAST_BACKUP
from silas_platform.celery import app
from silas_platform.installed_version import migrated_by
from silas_platform.partitions import list_partitions
from silas_platform.settings.broker import redis_servers

MOST_SKEW = timedelta(seconds=2)
MOST_WAIT = timedelta(minutes=5)
# A replica of a quiet database reports the age of the last change, so this is generous.
MOST_BEHIND = timedelta(minutes=15)
BACKUP_AGE = timedelta(days=2)
LEAST_FREE_BYTES, LEAST_FREE_SHARE = 2 << 30, 0.1
WORKERS_ANSWER_SECONDS = 3.0


class Level(StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAULT = "fault"


@dataclass(frozen=True)
class Finding:
    """`text`: one sentence, with what to do unless all is well."""

    level: Level
    subject: str
    text: str


def examine() -> Iterator[Finding]:
    """Every examination, in the order in which faults explain each other."""
    for subject, examination in EXAMINATIONS.items():
        try:
            for level, text in examination():
                yield Finding(level, subject, text)
        except Exception as error:  # noqa: BLE001 (an error that prevents an examination is its finding)
            reason = (str(error).strip().splitlines() or [""])[0][:200]
            yield Finding(Level.FAULT, subject, f"This could not be examined: {type(error).__name__} {reason}".strip())


Findings = Iterator[tuple[Level, str]]


def _configuration() -> Findings:
    found = [each for each in run_checks(databases=["default"]) if not each.is_silenced()]
    for each in found:
        yield (Level.FAULT if each.level >= ERROR else Level.WARNING), f"{each.id}: {each.msg}"
    if not found:
        yield Level.OK, "Every start-up check passes."


def _database() -> Findings:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('server_version'), pg_database_size(current_database()),"
            " (SELECT count(*) FROM pg_stat_activity), current_setting('max_connections')::int"
        )
        version, size, used, most = cursor.fetchone()
    yield Level.OK, f"PostgreSQL {version} answers; {_bytes(size)}."
    if used > 0.8 * most:
        yield Level.WARNING, f"{used} of {most} connections are in use: put a pooler before PostgreSQL."
    if (before := migrated_by()) == __version__:
        yield Level.OK, f"The database was migrated by this version, {before}."
    elif before:
        yield Level.WARNING, f"The database was migrated by {before} and this is {__version__}: run one version."
    if REPLICA in connections:
        yield from _replica()
    executor = MigrationExecutor(connection)
    if plan := executor.migration_plan(executor.loader.graph.leaf_nodes()):
        yield Level.FAULT, f"Migrations are missing ({len(plan)}): run migrate."


def _replica() -> Findings:
    with connections[REPLICA].cursor() as cursor:
        cursor.execute("SELECT pg_is_in_recovery(), now() - pg_last_xact_replay_timestamp()")
        is_replica, behind = cursor.fetchone()
    if not is_replica:
        yield (
            Level.FAULT,
            "DATABASE_REPLICA_URL names a server that is no replica: name a standby of this database.",
        )
    elif behind is not None and behind > MOST_BEHIND:
        yield (
            Level.WARNING,
            f"The replica is {behind.total_seconds():.0f} s behind, and so are figures and searches.",
        )
    else:
        yield Level.OK, "The replica follows."


def _clocks() -> Findings:
    with connection.cursor() as cursor:
        before = now()
        cursor.execute("SELECT clock_timestamp()")
        (there,) = cursor.fetchone()
    skew = abs(there - before)
    if skew > MOST_SKEW:
        yield Level.FAULT, f"The database's clock differs by {skew.total_seconds():.1f} s: synchronise both by NTP."
    else:
        yield Level.OK, "This machine and the database agree on the time."


def _redis() -> Findings:
    for url in redis_servers():
        name = name_of(url)
        with connect(url, socket_timeout=5) as client:
            started = time.monotonic()
            client.ping()
            took = (time.monotonic() - started) * 1000
            info = client.info("memory")
        if info.get("maxmemory") and info["used_memory"] > 0.9 * info["maxmemory"]:
            yield Level.WARNING, f"{name} uses nine tenths of its memory: raise maxmemory."
        else:
            yield Level.OK, f"{name} answers in {took:.0f} ms."
    # A Redis that is full may answer a ping and keep nothing.
    cache.set("doctor", "1", 5)
    if cache.get("doctor") != "1":
        yield Level.FAULT, "The cache answers and keeps nothing: look at its memory and rights."


def _workers() -> Findings:
    answers = app.control.inspect(timeout=WORKERS_ANSWER_SECONDS).active_queues() or {}
    served = {queue["name"] for queues in answers.values() for queue in queues}
    for worker in Worker:
        if worker.value not in served:
            yield Level.FAULT, f"No worker answers for the queue {worker.value}: start one, or see why it is silent."
    if not set(Worker) - served:
        yield Level.OK, f"{len(answers)} workers answer, and every queue has one."


def _queues() -> Findings:
    dead, late = 0, None
    for tenant in [INSTALLATION, *all_tenants()]:
        with tenant_scope(tenant):
            for depth in bus.depths():
                dead += depth.dead
                late = min(filter(None, (late, depth.oldest)), default=None)
    if late is not None and now() - late > MOST_WAIT:
        yield Level.FAULT, f"A message has been due since {late:%Y-%m-%d %H:%M} UTC: see manage.py queue."
    if dead:
        yield Level.WARNING, f"{dead} messages failed for good: see manage.py queue."
    if not dead and (late is None or now() - late <= MOST_WAIT):
        yield Level.OK, "Nothing is late, and nothing failed for good."


def _keys() -> Findings:
    if not settings.SILAS_SIGNING_KEY:
        yield Level.WARNING, "This process holds no signing key, so policy is checked with the pinned keys only."
    elif settings.SILAS_ROOT_KEYS and trust.root_of(settings.SILAS_SIGNING_KEY) not in settings.SILAS_ROOT_KEYS:
        yield Level.FAULT, "The pinned keys lack that of this signing key: pin the output of manage.py root_key."
    untrusted = []
    for tenant in all_tenants():
        with tenant_scope(tenant):
            untrusted += [f"{tenant.slug} {kind}" for kind in PolicyKind if policy_seals.load_items(kind) is None]
    if untrusted:
        names = ", ".join(untrusted[:5])
        yield Level.FAULT, f"Not certified: {names}. Compare them with what should hold, then run manage.py certify."
    else:
        yield Level.OK, "The policy of every company is certified by a pinned key."


def _sandbox() -> Findings:
    yield Level.OK, f"Scripts run in {backend().name}."


def _mail() -> Findings:
    if not settings.EMAIL_HOST:
        yield Level.WARNING, "No mail server is set (SILAS_MAIL_HOST): nobody resets a password by email."
        return
    with smtplib.SMTP(settings.EMAIL_HOST, settings.EMAIL_PORT, timeout=10) as server:
        if settings.EMAIL_USE_TLS:
            server.starttls()
        if settings.EMAIL_HOST_USER:
            server.login(settings.EMAIL_HOST_USER, settings.EMAIL_HOST_PASSWORD)
    yield Level.OK, f"{settings.EMAIL_HOST} accepts a connection."


def _disk() -> Findings:
    usage = shutil.disk_usage(settings.VAR_DIR)
    low = usage.free < LEAST_FREE_BYTES or usage.free < LEAST_FREE_SHARE * usage.total
    text = f"{_bytes(usage.free)} of {_bytes(usage.total)} are free at {settings.VAR_DIR}."
    yield (Level.WARNING if low else Level.OK), text


def _partitions() -> Findings:
    ends: dict[str, date] = {}
    for each in list_partitions():
        if each.until is not None:
            ends[each.table] = max(each.until, ends.get(each.table, each.until))
        elif not each.is_empty:
            yield Level.WARNING, f"{each.name} holds rows of no month: run manage.py partitions make."
    # Months are made `MONTHS_AHEAD`: if the next one is missing, no trusted worker has run for months.
    next_month_end = (now().date().replace(day=1) + timedelta(days=62)).replace(day=1)
    for table, end in ends.items():
        if end < next_month_end:
            yield Level.WARNING, f"{table} has months until {end} only: run manage.py partitions make."
        else:
            yield Level.OK, f"{table} has its months until {end}."


def _backups() -> Findings:
    try:
        last = json.loads((Path(settings.VAR_DIR) / LAST_BACKUP).read_text())
        made, place = datetime.fromisoformat(last["created"]).astimezone(UTC), str(last["place"])
    except (OSError, ValueError, KeyError, TypeError):
        yield Level.WARNING, "No backup was made from this machine: see manage.py backup."
        return
    level = Level.WARNING if now() - made > BACKUP_AGE else Level.OK
    yield level, f"The last backup was made on {made:%Y-%m-%d %H:%M} UTC at {place}."


EXAMINATIONS: dict[str, Callable[[], Findings]] = {
    "configuration": _configuration,
    "database": _database,
    "clocks": _clocks,
    "redis": _redis,
    "workers": _workers,
    "queues": _queues,
    "keys": _keys,
    "sandbox": _sandbox,
    "mail": _mail,
    "disk": _disk,
    "partitions": _partitions,
    "backups": _backups,
}


def _bytes(number: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if number < 1024:
            return f"{number:.0f} {unit}"
        number /= 1024
    return f"{number:.1f} TB"
