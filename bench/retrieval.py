"""Measure cost and quality of hybrid search (text and vectors) against nearest neighbours alone.

Goals: over 20,000 chunks, warm, p95 at most three times the bare nearest-neighbour query over the same
rows, and under 30 ms on a quiet machine. Only the queries are timed, turn by turn, not the scopes around them; every
question is asked several times and counts with its middle time, so that a noisy second of the machine does not decide.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import corpus
from bench.report import Row
from bench.stage import stage

CHUNKS = 20_000
ROUNDS, ASKED, K = 7, 300, 6
BARE = "SELECT id FROM memory_chunk WHERE tenant_id = %s ORDER BY embedding <=> %s::vector LIMIT %s"
BARE_TEXTS = "SELECT text FROM memory_chunk WHERE tenant_id = %s ORDER BY embedding <=> %s::vector LIMIT %s"


def run() -> list[Row]:
    with stage() as ready, tempfile.TemporaryDirectory() as folder:
        tenant = ready.deployment.tenant_id
        questions = _fill(tenant, Path(folder))
        asked = [_Asked(tenant, *questions[at * 7919 % len(questions)]) for at in range(ASKED)]
        return [_cost(asked), _worth(asked)]


class _Asked:
    """One question, its vector ready, and both ways of answering it."""

    def __init__(self, tenant: Any, question: str, form: str) -> None:
        from llm import embedding

        self.tenant, self.question, self.form = tenant, question, form
        self.vector = embedding.embed(question)

    def hybrid(self) -> list[str]:
        from apps.knowledge import queries

        found = queries.search(self.question, vector=self.vector, levels=("public",), k=K)
        return [passage.quote for passage in found]

    def bare(self) -> list[str]:
        return self._nearest(BARE)

    def bare_texts(self) -> list[str]:
        return self._nearest(BARE_TEXTS)

    def _nearest(self, statement: str) -> list[str]:
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute(statement, [self.tenant, str(self.vector), K])
            return [str(row[0]) for row in cursor]


def _fill(tenant: Any, folder: Path) -> list[tuple[str, str]]:
    from django.db import connections

    from apps.knowledge import services
    from apps.knowledge.models import Chunk
    from kernel.tenancy import tenant_scope

    questions = corpus.write(folder / "handbooks.jsonl", sections=CHUNKS)
    services.ingest(tenant, collection="handbooks", paths=[folder / "handbooks.jsonl"], root=folder)
    with tenant_scope(tenant):
        stored = Chunk.objects.count()
    if stored != CHUNKS:
        raise RuntimeError(f"the corpus has {stored} chunks, not {CHUNKS}")
    # What autovacuum does a minute after an ingest.
    with connections["owner"].cursor() as cursor:
        cursor.execute("VACUUM ANALYZE memory_chunk, memory_collection")
    return questions


def _cost(asked: list[_Asked]) -> Row:
    rounds = [[_both_timed(each) for each in asked] for _ in range(1 + ROUNDS)]
    # The first round warms up.
    middle = [
        [statistics.median(times) for times in zip(*question, strict=True)]
        for question in zip(*rounds[1:], strict=True)
    ]
    found, base = (_p95([times[way] for times in middle]) for way in (0, 1))
    holds = found <= 3 * base and found < 30
    return Row(
        "search of 20,000 chunks, p95",
        found,
        "ms",
        "nearest neighbour p95",
        base,
        found / base,
        "≤ 3, < 30 ms",
        holds,
    )


def _both_timed(asked: _Asked) -> tuple[float, float]:
    """Of the search and of the nearest neighbours alone, in ms, each in a scope of its own."""
    from kernel.tenancy import tenant_scope

    with tenant_scope(asked.tenant):
        hybrid = _timed(asked.hybrid)
    with tenant_scope(asked.tenant):
        return hybrid, _timed(asked.bare)


def _worth(asked: list[_Asked]) -> Row:
    """Of the questions, the share whose own section is among the six."""
    from kernel.tenancy import tenant_scope

    with tenant_scope(asked[0].tenant):
        hybrid = statistics.mean(any(each.form in text for text in each.hybrid()) for each in asked)
        bare = statistics.mean(any(each.form in text for text in each.bare_texts()) for each in asked)
    return Row(
        "questions answered among six", hybrid, "", "nearest neighbour", bare, hybrid / bare, "≥ 1", hybrid >= bare
    )


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def _p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]
