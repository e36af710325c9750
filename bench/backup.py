"""Measure a backup of a million entries of conversations beside PostgreSQL's own dump of the same database.

Baseline: `pg_dump --format=custom` of the whole database as its superuser, whom row-level security does not bind. The
backup also copies checkpoints, counts the rows of every table in the dump's snapshot, and hashes and syncs every file.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import psycopg

from bench.report import Row
from bench.stage import servers
from tests import prepared

ENTRIES, ROUNDS, BOUND = 1_000_000, 3, 1.5
# As a restore would: the guards of the tables look at each row otherwise.
_FILL = """
    INSERT INTO silas_sessions_chronicleentry
        (id, tenant_id, session_id, seq, kind, sender, text, payload, taint, client_id, turn, created_at)
    SELECT gen_random_uuid(), %(tenant)s, %(session)s, n, 'message', CASE WHEN n %% 2 = 1 THEN 'visitor' ELSE 'bot' END,
        'Order ' || md5(n::text) || ' takes two to four days, and you can follow it.', '{}', 'external', '',
        (n + 1) / 2, now() - n * interval '2 seconds'
    FROM generate_series(1000, %(entries)s + 999) AS n
"""


def run() -> list[Row]:
    with servers(lay=prepared.lay) as env, tempfile.TemporaryDirectory() as folder:
        _fill(env["SILAS_TEST_SUPERUSER_DSN"])
        from silas_platform.backup.making import back_up
        from silas_platform.up.embedded import binary

        def dump() -> None:
            target = Path(folder) / uuid4().hex
            address = env["SILAS_TEST_SUPERUSER_DSN"]
            subprocess.run([binary("pg_dump"), "--format=custom", f"--file={target}", address], check=True)

        pairs = [(_seconds(dump), _seconds(lambda: back_up(f"{folder}/{uuid4().hex}"))) for _ in range(ROUNDS)]
    bare, whole = (statistics.median(times) for times in zip(*pairs, strict=True))
    name = f"backup of {ENTRIES:,} entries of conversations"
    return [Row(name, whole, "s", "pg_dump", bare, whole / bare, f"≤ {BOUND} times", whole <= BOUND * bare)]


def _fill(superuser: str) -> None:
    from apps.sessions.services import start_session
    from apps.tenants.models import Deployment, Tenant
    from kernel.tenancy import tenant_scope

    tenant = Tenant.objects.create(slug=f"bench-{os.getpid()}", name="Bench")
    with tenant_scope(tenant):
        deployment = Deployment.objects.create(tenant=tenant, slug="bench", title="Bench", public_key=uuid4().hex)
    session = start_session(deployment).session_id
    with psycopg.connect(superuser) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(_FILL, {"tenant": tenant.pk, "session": session, "entries": ENTRIES})


def _seconds(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started
