"""Measure the export of a customer with 10,000 messages: its time, and the memory it takes beside one with 1,000.

Baseline: the same export with a tenth of the messages.
"""

from __future__ import annotations

import os
import time
import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID, uuid4

import psycopg

from bench.report import Row
from bench.stage import servers
from tests import prepared

FEW, MANY, SECONDS, GROWTH = 1_000, 10_000, 10.0, 1.2
# As a restore would: the guards of the tables look at each row otherwise.
_FILL = """
    INSERT INTO silas_sessions_chronicleentry
        (id, tenant_id, session_id, seq, kind, sender, text, payload, taint, client_id, turn, created_at)
    SELECT gen_random_uuid(), %(tenant)s, %(session)s, n + 1000, 'message',
        CASE WHEN n %% 2 = 1 THEN 'visitor' ELSE 'bot' END,
        repeat('Order ' || md5(n::text) || ' takes two to four days. ', 5), '{}', 'external', '',
        (n + 1) / 2, now() - n * interval '2 seconds'
    FROM generate_series(1, %(entries)s) AS n
"""


def run() -> list[Row]:
    with servers(lay=prepared.lay) as env, TemporaryDirectory() as folder:
        few, many = _visitor(env, FEW), _visitor(env, MANY)
        _export(*few, Path(folder))  # warms up
        few_seconds, many_seconds = _seconds(*few, Path(folder)), _seconds(*many, Path(folder))
        few_bytes, many_bytes = _peak(*few, Path(folder)), _peak(*many, Path(folder))
    growth = many_bytes / few_bytes
    return [
        Row(
            *(f"export of a customer with {MANY:,} messages", many_seconds, "s", f"{FEW:,} messages", few_seconds),
            *(many_seconds / few_seconds, f"≤ {SECONDS:.0f} s", many_seconds <= SECONDS),
        ),
        Row(
            *("its memory at the most", many_bytes / 2**20, "MB", f"{FEW:,} messages", few_bytes / 2**20),
            *(growth, f"≤ {GROWTH} times", growth <= GROWTH),
        ),
    ]


def _visitor(env: dict[str, str], entries: int) -> tuple[UUID, UUID]:
    """(tenant, conversation) of a visitor who has sent and read so many messages."""
    from apps.sessions.services import start_session
    from apps.tenants.models import Deployment, Tenant
    from kernel.tenancy import tenant_scope

    tenant = Tenant.objects.create(slug=f"bench-{os.getpid()}-{entries}", name="Bench")
    with tenant_scope(tenant):
        deployment = Deployment.objects.create(tenant=tenant, slug="bench", title="Bench", public_key=uuid4().hex)
    session = UUID(str(start_session(deployment).session_id))
    with psycopg.connect(env["SILAS_TEST_SUPERUSER_DSN"]) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(_FILL, {"tenant": tenant.pk, "session": session, "entries": entries})
    return tenant.pk, session


def _export(tenant: UUID, session: UUID, folder: Path) -> None:
    from apps.contacts.person_export import export_person, person_of_visitor

    with (folder / f"{session}.zip").open("wb") as out:
        report = export_person(lambda: person_of_visitor(session), tenant, out, actor="command:bench")
    assert report.counts["messages"] in (FEW, MANY), report.counts


def _seconds(tenant: UUID, session: UUID, folder: Path) -> float:
    started = time.perf_counter()
    _export(tenant, session, folder)
    return time.perf_counter() - started


def _peak(tenant: UUID, session: UUID, folder: Path) -> int:
    tracemalloc.start()
    try:
        _export(tenant, session, folder)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
