"""What the bus costs: a message's three commits beside three bare ones, also when many wait; how soon work begins.

The baseline of the first is a stock connection making three transactions of one INSERT each; that of the second is
Celery's own task that does nothing, in the same worker.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

from bench.bare import insert
from bench.report import Row
from bench.stage import Stage, stage
from bench.worker import Worker, worker

# Short blocks in turn, all depths and the baseline in every round: what else the machine does falls on all alike.
ROUNDS, CYCLES = 40, 15
DEPTHS = (100, 1_000, 10_000, 100_000)
PINGS, WARM_UP = 100, 5
FUTURE = 1_000_000
_LATER = """
    INSERT INTO bus_queuemessage (id, tenant_id, queue, kind, message_id, trace_id, scope_id, content, sender, taint,
                                  urgency, error_code, origin_agent, state, attempts, consumer, fence, reason,
                                  available_at)
    SELECT gen_random_uuid(), %s, 'upkeep', 'wait_end', 'later-' || n, 't', 'later-' || n, '', 'runtime', 'auth',
           'informational', '', '', 'queued', 0, '', 0, '', now() + interval '1 day' FROM generate_series(1, %s) n
"""
_BARE = """
    SELECT tenant_id, queue, scope_id FROM bus_queuemessage
    WHERE queue = 'upkeep' AND state = 'queued' AND available_at <= statement_timestamp()
"""
# How what waits is spread: all in one conversation, a hundred each, one each.
SHAPES: dict[str, Callable[[int], int]] = {
    "one scope": lambda depth: 1,
    "scopes of 100": lambda depth: max(depth // 100, 1),
    "scopes of 1": lambda depth: depth,
}
_FILL = """
    INSERT INTO bus_queuemessage (id, tenant_id, queue, kind, message_id, trace_id, scope_id, content, sender, taint,
                                  urgency, error_code, origin_agent, state, attempts, consumer, fence, reason)
    SELECT gen_random_uuid(), %s, 'proxy', 'user_message', n::text, 't', 'waiting-' || md5((n %% %s)::text), '',
           'runtime', 'external', 'informational', '', '', 'queued', 0, '', 0, '' FROM generate_series(1, %s) n
"""


def run() -> list[Row]:
    with stage() as ready:
        rates = [*_rates(ready), _due()]
        with worker(ready, "bench.worker") as started:
            return [*rates, *_latency(ready, started)]


def _rates(ready: Stage) -> Iterator[Row]:
    for shape, scopes in SHAPES.items():
        cycles = [_Cycle(_crowded_tenant(depth, scopes(depth))) for depth in DEPTHS]
        works: tuple[Callable[[], None], ...] = (_three_commits, *cycles)
        measured = [[_timed(work) for work in works] for _ in range(ROUNDS + 1)][1:]
        bare, *ours = (CYCLES / statistics.median(times) for times in zip(*measured, strict=True))
        for depth, rate in zip(DEPTHS, ours, strict=True):
            name = f"bus enqueue + lease + ack, {depth:,} waiting, {shape}"
            yield Row(name, rate, "/s", "three bare commits", bare, rate / bare, "≥ 0.3", rate / bare >= 0.3)
        flat = min(ours) / max(ours)
        yield Row(f"bus slowest depth, {shape}", min(ours), "/s", "fastest", max(ours), flat, "≥ 0.8", flat >= 0.8)


def _due() -> Row:
    """The question for due work of all tenants beside its bare indexed query, as the owner without row-level security's
    function around it; a million messages wait for a later time, ten are due."""
    from django.db import connection, connections

    from apps.bus import queries
    from apps.bus.enums import Queue
    from apps.bus.models import QueueMessage
    from apps.tenants.models import Tenant
    from kernel.clock import now
    from kernel.tenancy import INSTALLATION, tenant_scope

    with tenant_scope(INSTALLATION):  # its own recurring job is due as well
        QueueMessage.objects.filter(queue=Queue.UPKEEP).update(available_at=now() + timedelta(days=1))
    tenants = [Tenant.objects.create(slug=f"due-{uuid4().hex[:8]}", name="Bench") for _ in range(10)]
    for tenant in tenants:
        with tenant_scope(tenant), connection.cursor() as cursor:
            cursor.execute(_LATER, [tenant.pk, FUTURE // len(tenants)])
            cursor.execute(_LATER.replace("interval '1 day'", "interval '0'").replace("later-", "now-"), [tenant.pk, 1])
    with connections["owner"].cursor() as cursor:
        cursor.execute("VACUUM ANALYZE bus_queuemessage")
    assert len(queries.due_scopes([Queue.UPKEEP])) == len(tenants)

    def bare() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('silas.platform', 'on', false)")
            cursor.execute(_BARE)
            assert len(cursor.fetchall()) == len(tenants)
            cursor.execute("SELECT set_config('silas.platform', '', false)")

    times = [(_timed(lambda: queries.due_scopes([Queue.UPKEEP])), _timed(bare)) for _ in range(ROUNDS + 1)][1:]
    ours, plain = (statistics.median(each) / CYCLES * 1000 for each in zip(*times, strict=True))
    name = f"due work of all tenants, {FUTURE:,} messages of the future, 10 due"
    ratio = ours / plain
    return Row(name, ours, "ms", "bare indexed query in a scope", plain, ratio, "≤ 3", ratio <= 3)


def _crowded_tenant(depth: int, scopes: int) -> Any:
    from apps.tenants.models import Tenant

    tenant = Tenant.objects.create(slug=f"bench-{uuid4().hex[:8]}", name="Bench")
    _fill(tenant.pk, depth, scopes)
    return tenant


def _timed(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    for _ in range(CYCLES):
        work()
    return time.perf_counter() - began


class _Cycle:
    """One message in and out, in a scope of its own beside all that wait."""

    def __init__(self, tenant: Any) -> None:
        self._tenant = tenant

    def __call__(self) -> None:
        from apps.bus import services
        from kernel.tenancy import tenant_scope

        scope_id = uuid4()
        with tenant_scope(self._tenant):
            services.send_message("proxy", kind="user_message", scope_id=scope_id, sender="user", payload={"seq": 1})
        with tenant_scope(self._tenant):
            lease = services.lease("proxy", consumer="bench", scope_id=scope_id)
        assert lease is not None
        with tenant_scope(self._tenant):
            services.ack(lease)


def _three_commits() -> None:
    for _ in range(3):
        insert("hello")


def _fill(tenant_id: Any, depth: int, scopes: int) -> None:
    from django.db import connection, connections

    from kernel.tenancy import tenant_scope

    with tenant_scope(tenant_id), connection.cursor() as cursor:
        cursor.execute(_FILL, [tenant_id, scopes, depth])
    with connections["owner"].cursor() as cursor:
        cursor.execute("VACUUM ANALYZE bus_queuemessage")


def _latency(ready: Stage, started: Worker) -> list[Row]:
    ours, bare = wake_ups(ready, started)
    ratio = ours / bare
    name = "enqueue to the handler's first line, idle, p95"
    return [Row(name, ours, "ms", "Celery's no-op, p95", bare, ratio, "≤ 3", ratio <= 3)]


def wake_ups(ready: Stage, started: Worker) -> tuple[float, float]:
    """p95 in ms until the first line ran, of a message and of a bare task, alternately and each on an idle system."""
    ours, bare = [], []
    for _ in range(WARM_UP + PINGS):
        ours.append(started.until_heard(lambda: _enqueue(ready.deployment.tenant_id)))
        bare.append(started.until_heard(started.send_noop))
    ours_p95, bare_p95 = (_p95(found[WARM_UP:]) * 1000 for found in (ours, bare))
    return ours_p95, bare_p95


def _enqueue(tenant_id: Any) -> None:
    from apps.bus import services
    from kernel.tenancy import tenant_scope

    with tenant_scope(tenant_id):
        services.send_message("runtime", kind="system_event", scope_id=uuid4(), sender="runtime")


def _p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]
