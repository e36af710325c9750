"""Measure how long it takes to merge the duplicates among a company's memories.

Goals: 100,000 memories, every second one a duplicate, in under five minutes, and no merging transaction above half a
second at the 95th percentile, because a turn that stores a memory may wait for one. The memories are written with SQL,
without vectors, which merging does not read. `SILAS_BENCH_MEMORIES` gives another number.
"""

from __future__ import annotations

import os
import statistics
import time
from uuid import UUID

from bench.report import Row
from bench.stage import stage

MEMORIES = int(os.environ.get("SILAS_BENCH_MEMORIES", "100000"))
IN_SCOPE = 100
MOST_SECONDS, MOST_BATCH_SECONDS = 300, 0.5
_FILL = """
INSERT INTO memory_memoryitem (id, tenant_id, scope, content, memory_type, tier, trust, taint, source_kind, reference,
        created_at, updated_at, valid_until, tags, entity_refs, links, marked)
    SELECT gen_random_uuid(), %(tenant)s, 'customer:C-' || number / %(in_scope)s,
            'The customer mentioned order ' || number / 2 || ' and asked for a call back', 'fact', 'active', 'working',
            'external', 'memory_op', 'bench:' || number, now() + number * interval '1 microsecond', now(),
            now() + interval '1 year', '{}', '{}', '[]', false
        FROM generate_series(0, %(count)s - 1) AS number
"""


def run() -> list[Row]:
    with stage() as ready:
        _fill(ready.deployment.tenant_id)
        started = time.perf_counter()
        batches = _merge(ready.deployment.tenant_id)
        total = time.perf_counter() - started
    slow = statistics.quantiles(batches, n=20)[-1]
    name = f"merging {MEMORIES // 2:,} duplicates of {MEMORIES:,} memories"
    return [
        _row(name, total, MOST_SECONDS),
        _row("one transaction that locks, p95", slow, MOST_BATCH_SECONDS),
    ]


def _row(name: str, seconds: float, most: float) -> Row:
    return Row(name, seconds, "s", "at most", most, seconds / most, f"≤ {most} s", seconds <= most)


def _fill(tenant: UUID) -> None:
    from django.db import connection

    from kernel.tenancy import tenant_scope

    with tenant_scope(tenant), connection.cursor() as cursor:
        cursor.execute(_FILL, {"tenant": tenant, "in_scope": IN_SCOPE, "count": MEMORIES})


def _merge(tenant: UUID) -> list[float]:
    """The seconds of each transaction that merges, in the order of the handler."""
    from apps.memory.consolidation import BATCH, merge
    from kernel.tenancy import tenant_scope

    batches = []
    while groups := _found(tenant):
        for start in range(0, len(groups), BATCH):
            started = time.perf_counter()
            with tenant_scope(tenant):
                merge(groups[start : start + BATCH])
            batches.append(time.perf_counter() - started)
    return batches


def _found(tenant: UUID) -> list[list[UUID]]:
    from apps.memory.consolidation import find_duplicates
    from kernel.tenancy import tenant_scope

    with tenant_scope(tenant):
        return find_duplicates()
