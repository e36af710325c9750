"""Measure the search of small companies beside one with a million chunks in the same tables.

A company with 1,000 chunks (compared exactly) and one with 5,000 (found through the index over everybody's vectors)
ask the same questions of two databases, turn by turn: one where they are nearly alone, and one with the large company.
The large one's vectors are sums of two real ones, so that they lie where the small companies' do. Each company must get
as many of its chunks as it asks for. The small one must get the same as alone, within 1.5 times the time; of the other
one, whose index is approximate, share and time are shown without a promise.
`BENCH_CHUNKS` changes the size of the large company.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from bench import corpus
from bench.report import Row
from bench.stage import deployment, servers
from tests import prepared

LARGE = int(os.environ.get("BENCH_CHUNKS", "1000000"))
SMALL, MIDDLE = 1_000, 5_000
ASKED, ROUNDS, K = 100, 5, 18
MOST, LEAST_SAME = 1.5, 0.95
ALONE = "alone"
SHARED, ROOM = Path("/dev/shm"), 4 * 1024**3
Connection = psycopg.Connection[tuple[Any, ...]]

_SEARCH = "SELECT chunk_id FROM memory_search(%s::uuid, ARRAY['public'], %s, %s::vector, %s)"
# As a restore would: the guards of the tables look at each row otherwise. Pairs repeat after 5,000 * 4,999 chunks.
_FILL = """
    WITH model AS MATERIALIZED (
        SELECT row_number() OVER (ORDER BY id) AS n, text, words, context, embedding FROM memory_chunk
        WHERE tenant_id = %(middle)s
    )
    INSERT INTO memory_chunk
        (id, tenant_id, collection_id, version_id, ordinal, start, "end", context, text, embedding, words)
    SELECT gen_random_uuid(), %(tenant)s, %(collection)s, %(version)s, at, at * 10, at * 10 + 9, one.context, one.text,
        l2_normalize(one.embedding + other.embedding), one.words
    FROM generate_series(1, %(chunks)s) AS at
    JOIN model AS one ON one.n = 1 + at %% 5000
    JOIN model AS other ON other.n = 1 + (at + 1 + at / 5000) %% 5000
"""
_INDEX = "SELECT indexdef FROM pg_indexes WHERE indexname = 'memory_chunk_near'"


@dataclass
class _Company:
    """A company, and questions with their vectors."""

    tenant: Any
    chunks: int
    asked: list[tuple[str, str]]


def run() -> list[Row]:
    with servers(lay=prepared.lay) as env, tempfile.TemporaryDirectory() as folder:
        small, middle = (_company(size, Path(folder)) for size in (SMALL, MIDDLE))
        superuser = env["SILAS_TEST_SUPERUSER_DSN"]
        _copy_database(superuser)
        _fill(superuser, middle, deployment("builtin:grounded").tenant_id)
        beside, alone = env["DATABASE_URL"], make_conninfo(env["DATABASE_URL"], dbname=ALONE)
        with psycopg.connect(beside) as with_large, psycopg.connect(alone) as without:
            return [row for each in (small, middle) for row in _rows(each, with_large, without)]


# -- companies ---------------------------------------------------------------------------------------------------------


def _company(chunks: int, folder: Path) -> _Company:
    from apps.knowledge import queries, services
    from llm import embedding

    tenant = deployment("builtin:grounded").tenant_id
    questions = corpus.write(folder / "handbooks.jsonl", sections=chunks)
    services.ingest(tenant, collection="handbooks", paths=[folder / "handbooks.jsonl"], root=folder)
    texts = [questions[at * 7919 % len(questions)][0] for at in range(ASKED)]
    return _Company(tenant, chunks, [(text, str(embedding.embed(queries.search_text(text)))) for text in texts])


def _copy_database(superuser: str) -> None:
    """The database as it is now, by another name."""
    from django.db import connections

    for each in connections.all():
        each.close()
        each.close_pool()  # type: ignore[attr-defined]  # of PostgreSQL's wrapper alone
    with psycopg.connect(make_conninfo(superuser, dbname="postgres"), autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'silas'")
        connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE silas").format(sql.Identifier(ALONE)))
    with psycopg.connect(make_conninfo(superuser, dbname=ALONE), autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE memory_chunk, memory_collection")


def _fill(superuser: str, model: _Company, tenant: Any) -> None:
    """The large company: one document of very many chunks, in tables whose index on vectors is built once."""
    from apps.knowledge.models import Collection, Document, DocumentVersion
    from kernel.tenancy import tenant_scope

    with tenant_scope(tenant):
        collection = Collection.objects.create(name="everything", chunk_count=LARGE)
        document = Document.objects.create(collection=collection, source_ref="everything", title="Everything")
        version = DocumentVersion.objects.create(document=document, number=1, sha256="0" * 64, text="Everything")
    values = {
        "tenant": tenant,
        "middle": model.tenant,
        "collection": collection.pk,
        "version": version.pk,
        "chunks": LARGE,
    }
    with psycopg.connect(superuser, autocommit=True) as connection:
        for setting in ("session_replication_role = replica", "maintenance_work_mem = '3GB'", "work_mem = '256MB'"):
            connection.execute(f"SET {setting}".encode())
        # Workers that build together need as much shared memory as the index needs of its own.
        workers = 2 if SHARED.exists() and shutil.disk_usage(SHARED).free > ROOM else 0
        connection.execute(f"SET max_parallel_maintenance_workers = {workers}".encode())
        (definition,) = connection.execute(_INDEX).fetchone() or ("",)
        connection.execute("DROP INDEX memory_chunk_near")
        spent = _seconds(lambda: connection.execute(_FILL, values))
        built = _seconds(lambda: connection.execute(str(definition).encode()))
        cleaned = _seconds(lambda: connection.execute("VACUUM ANALYZE memory_chunk, memory_collection"))
    print(f"{LARGE:,} chunks: {spent:.0f} s, index: {built:.0f} s, vacuum: {cleaned:.0f} s", file=sys.stderr)


# -- questions ---------------------------------------------------------------------------------------------------------


def _rows(company: _Company, with_large: Connection, without: Connection) -> list[Row]:
    times: list[tuple[float, float]] = []
    same, fewer = [], 0
    for question in company.asked:
        rounds = []
        for number in range(1 + ROUNDS):
            spent, found = _ask(with_large, company, question)
            spent_alone, expected = _ask(without, company, question)
            rounds += [(spent, spent_alone)] if number else []  # the first one warms up
        times.append((statistics.median(both for both, _ in rounds), statistics.median(one for _, one in rounds)))
        same.append(len({*found} & {*expected}) / len(expected))
        fewer += len(found) < K
    beside, alone = (statistics.quantiles(values, n=20)[-1] for values in zip(*times, strict=True))
    name, place = f"search of a company with {company.chunks:,} chunks", f"beside {LARGE:,}"
    ratio, share, promised = beside / alone, statistics.mean(same), company.chunks == SMALL
    time_bound = (f"≤ {MOST:g}", ratio <= MOST) if promised else ("", None)
    same_bound = (f"≥ {LEAST_SAME:g}", share >= LEAST_SAME) if promised else ("", None)
    return [
        Row(f"{name} {place}, p95", beside, "ms", "alone", alone, ratio, *time_bound),
        Row(f"{name} {place}: share of the passages that it finds alone", share, "", "", 0, 0, *same_bound),
        Row(
            f"{name} {place}: questions with fewer than {K} passages", fewer, "", "questions", ASKED, 0, "0", not fewer
        ),
    ]


def _ask(connection: Connection, company: _Company, question: tuple[str, str]) -> tuple[float, list[Any]]:
    """Milliseconds and the ids of the passages, in a scope of its own."""
    with connection.transaction():
        connection.execute("SELECT set_config('silas.tenant', %s, true)", [str(company.tenant)])
        begun = time.perf_counter()
        found = connection.execute(_SEARCH, [company.tenant, *question, K]).fetchall()
        return (time.perf_counter() - begun) * 1000, [chunk for (chunk,) in found]


def _seconds(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started
