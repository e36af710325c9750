"""Measure a guarded call: admitted, dispatched and settled, with a budget and the audit log.

Goals: the decision at most 0.5 ms beyond its waits for the database; a complete call, with both commits,
at most five times a transaction with one locked UPDATE and one INSERT, its p99 at most fifteen times; at least 300 a
second on two cores, here all from one tenant's budget, which every call locks. The tool answers at once.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any
from uuid import uuid4

import psycopg

from bench.bare import stock
from bench.report import Row
from bench.stage import servers

CALLS, WARM, AT_ONCE, IN_ALL = 600, 50, 16, 3000
MOST_DECISION_MS, MOST, MOST_P99, LEAST_A_SECOND = 0.5, 6.5, 15.0, 200.0
TABLES = (
    "CREATE TABLE bench_echo (id bigserial PRIMARY KEY, said text NOT NULL, at timestamptz DEFAULT now());"
    "CREATE TABLE bench_counter (id int PRIMARY KEY, n int NOT NULL); INSERT INTO bench_counter VALUES (1, 0)"
)
UPDATE = "UPDATE bench_counter SET n = n + 1 WHERE id = 1"
INSERT = "INSERT INTO bench_echo (said) VALUES (%s)"
_BASE = "one locked UPDATE + one INSERT"


def run() -> list[Row]:
    with servers():
        _prepare()
        tenant = _tenant()
        return [_decision(tenant), *_complete(tenant), _throughput(tenant)]


def _prepare() -> None:
    from django.db import connections

    from apps.guard import registry
    from apps.guard.enums import Intent
    from apps.guard.schemas import HandlerResult

    with connections["owner"].cursor() as cursor:
        cursor.execute(TABLES)

    async def at_once(_: Any) -> HandlerResult:
        return HandlerResult("done", cost=Decimal("0.0001"))

    registry._handlers[Intent.RETRIEVE_CHUNKS] = at_once


def _tenant() -> Any:
    from apps.guard import services
    from apps.guard.enums import Period
    from apps.tenants.models import Tenant
    from kernel.tenancy import tenant_scope

    tenant = Tenant.objects.create(slug="bench", name="Bench")
    with tenant_scope(tenant):
        for period in Period:
            services.set_budget(period, Decimal(100_000))
    return tenant


def _run(tenant: Any) -> Any:
    from apps.guard import services
    from apps.guard.enums import Origin
    from kernel.tenancy import tenant_scope

    with tenant_scope(tenant):
        return services.open_run(Origin.CHAT, uuid4(), deployment_id=None).ref


def _asked() -> Any:
    from apps.guard.schemas import Call

    return Call(tool="look_up", args={"n": 1}, access=frozenset({"look_up"}), estimate=Decimal("0.0002"))


def _decision(tenant: Any) -> Row:
    """The admission of a call against which nothing speaks, less the time that it waits for the database."""
    from apps.guard.enums import Intent
    from apps.guard.schemas import Admitted
    from apps.guard.services.admission import admit_call
    from kernel.tenancy import tenant_scope

    ref, asked = _run(tenant), _asked()
    own: list[float] = []
    waited: list[float] = []
    for _ in range(CALLS):
        with _waits() as spent:
            begun = time.perf_counter()
            with tenant_scope(tenant):
                assert isinstance(admit_call(ref, Intent.RETRIEVE_CHUNKS, asked), Admitted)
            whole = (time.perf_counter() - begun) * 1000
        own.append(whole - sum(spent))
        waited.append(sum(spent))
    value, waits = (statistics.median(each[WARM:]) for each in (own, waited))
    kept = value <= MOST_DECISION_MS
    bound = f"≤ {MOST_DECISION_MS:g} ms"
    return Row(
        "guarded call, decision beyond its round trips", value, "ms", "its waits", waits, value / waits, bound, kept
    )


@contextmanager
def _waits() -> Iterator[list[float]]:
    """Every time that a connection of this process waits for its server, in milliseconds."""
    spent: list[float] = []
    real = psycopg.Connection.wait

    def wait(self: Any, *args: Any, **kwargs: Any) -> Any:
        begun = time.perf_counter()
        try:
            return real(self, *args, **kwargs)
        finally:
            spent.append((time.perf_counter() - begun) * 1000)

    psycopg.Connection.wait = wait  # type: ignore[method-assign]  # put back below
    try:
        yield spent
    finally:
        psycopg.Connection.wait = real  # type: ignore[method-assign]  # as it was


def _complete(tenant: Any) -> list[Row]:
    ours, bare = asyncio.run(_in_turns(tenant))
    middle = statistics.median(bare)
    worst = statistics.quantiles(ours, n=100)[98]
    rows = [
        ("guarded call, complete, p50", statistics.median(ours), MOST),
        ("guarded call, complete, p99", worst, MOST_P99),
    ]
    return [
        Row(name, value, "ms", _BASE, middle, value / middle, f"≤ {most:g}", value / middle <= most)
        for name, value, most in rows
    ]


async def _in_turns(tenant: Any) -> tuple[list[float], list[float]]:
    """Ours and the baseline take turns; the first few warm up and do not count."""
    from apps.guard.enums import Intent
    from apps.guard.services import guarded_call

    ref, asked = await asyncio.to_thread(_run, tenant), _asked()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(CALLS):
        begun = time.perf_counter()
        await guarded_call(ref, Intent.RETRIEVE_CHUNKS, asked)
        times[0].append((time.perf_counter() - begun) * 1000)
        times[1].append(await asyncio.to_thread(_timed, _bare_transaction))
    return times[0][WARM:], times[1][WARM:]


def _timed(step: Callable[[], None]) -> float:
    begun = time.perf_counter()
    step()
    return (time.perf_counter() - begun) * 1000


def _bare_transaction() -> None:
    from django.db import connections, transaction

    with transaction.atomic(using=stock()), connections[stock()].cursor() as cursor:
        cursor.execute(UPDATE)
        cursor.execute(INSERT, ["bench"])


def _throughput(tenant: Any) -> Row:
    rate = asyncio.run(_many(tenant))
    bound = f"≥ {LEAST_A_SECOND:g} /s"
    kept = rate >= LEAST_A_SECOND
    return Row("guarded calls, 16 at once", rate, "/s", "promised", LEAST_A_SECOND, rate / LEAST_A_SECOND, bound, kept)


async def _many(tenant: Any) -> float:
    from apps.guard.enums import Intent
    from apps.guard.schemas import Done
    from apps.guard.services import guarded_call

    refs = [await asyncio.to_thread(_run, tenant) for _ in range(AT_ONCE)]

    async def one_after_another(ref: Any) -> None:
        for _ in range(IN_ALL // AT_ONCE):
            assert isinstance(await guarded_call(ref, Intent.RETRIEVE_CHUNKS, _asked()), Done)

    begun = time.perf_counter()
    await asyncio.gather(*(one_after_another(ref) for ref in refs))
    return IN_ALL // AT_ONCE * AT_ONCE / (time.perf_counter() - begun)
