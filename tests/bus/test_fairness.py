"""No tenant's crowd of messages delays another tenant's one, and no scope's another scope's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection

from apps.bus import queries, worker
from apps.bus.deliveries import Delivery
from apps.bus.enums import Queue
from apps.bus.queries import DueScope
from apps.bus.workers import Worker
from kernel.clock import now
from kernel.tenancy import in_thread, tenant_scope
from tests.bus.conftest import held
from tests.factories.bus import crowd, disperse, let_leases_run_out, make_message

CROWD = 10_000


@pytest.fixture
def served(consume: Any, tenant: Any, other_tenant: Any) -> Iterator[list[tuple[Any, str]]]:
    """(tenant, scope) of every delivery, in their order; each does nothing. What is left then is nobody's any more."""
    told: list[tuple[Any, str]] = []

    async def tell(delivery: Delivery) -> None:
        told.append((delivery.tenant_id, delivery.message.scope_id))

    consume(tell)
    yield told
    for one in (tenant, other_tenant):
        disperse(one)


@pytest.mark.parametrize(("scopes", "is_same"), [(1, False), (CROWD, False), (1, True)])
def test_crowd_does_not_delay_a_message_of_another_tenant_or_scope(
    tenant: Any, other_tenant: Any, served: Any, drain: Any, monkeypatch: Any, scopes: int, is_same: bool
) -> None:
    monkeypatch.setattr(worker, "SHIFT_SECONDS", 0.5)
    crowd(tenant, CROWD, scopes=scopes, queue=Queue.RUNTIME)
    whose = tenant if is_same else other_tenant
    make_message(whose, queue=Queue.RUNTIME, scope_id="zz-alone")
    drain()
    before = [served_tenant for served_tenant, _ in served[: served.index((whose.pk, "zz-alone"))]]
    assert before.count(tenant.pk) <= 1


def test_message_that_comes_during_a_crowd_waits_for_one_list(
    tenant: Any, other_tenant: Any, consume: Any, drain: Any, monkeypatch: Any
) -> None:
    order: list[Any] = []

    async def slow(delivery: Delivery) -> None:
        order.append(delivery.tenant_id)
        if len(order) == 1:
            await in_thread(make_late)
        await asyncio.sleep(0.02)

    def make_late() -> None:
        make_message(other_tenant, queue=Queue.RUNTIME)

    consume(slow)
    monkeypatch.setattr(worker, "LIST_SECONDS", 0.1)
    crowd(tenant, 100, scopes=100, queue=Queue.RUNTIME)
    drain()
    disperse(tenant)
    assert order.index(other_tenant.pk) < 20


def test_scopes_of_a_tenant_are_served_in_turn(tenant: Any, served: Any, drain: Any) -> None:
    for number in range(9):
        make_message(tenant, queue=Queue.RUNTIME, scope_id="abc"[number % 3])
    drain()
    mine = [scope for tenant_id, scope in served if tenant_id == tenant.pk]
    assert [sorted(mine[start : start + 3]) for start in (0, 3, 6)] == [["a", "b", "c"]] * 3


def test_tenants_are_served_in_turn(tenant: Any, other_tenant: Any, served: Any, drain: Any) -> None:
    ours = (tenant, other_tenant)
    for one in ours:
        crowd(one, 15, scopes=5, queue=Queue.RUNTIME)
    drain()
    order = [tenant_id for tenant_id, _ in served if tenant_id in {one.pk for one in ours}]
    rounds = [set(order[start : start + 2]) for start in range(0, len(order), 2)]
    assert rounds == [{one.pk for one in ours}] * 15


def test_next_shift_goes_on_where_the_last_one_ended(
    tenant: Any, other_tenant: Any, served: Any, drain: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(worker, "SHIFT_SECONDS", 0.0)
    for one in (tenant, other_tenant):
        crowd(one, 100, scopes=5, queue=Queue.RUNTIME)
    for _ in range(4):
        drain()
    ours = [tenant_id for tenant_id, _ in served if tenant_id in {tenant.pk, other_tenant.pk}]
    assert set(ours) == {tenant.pk, other_tenant.pk}


def test_shift_that_ends_before_the_work_wakes_a_worker(tenant: Any, served: Any, drain: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(worker, "SHIFT_SECONDS", 0.0)
    woken: list[Worker] = []
    monkeypatch.setattr(worker.wakeup, "wake", woken.append)
    crowd(tenant, 2, scopes=2, queue=Queue.RUNTIME)
    drain()
    assert woken == [Worker.WORK]


def due(*tenants: Any) -> set[tuple[str, Any, str]]:
    pks = {one.pk for one in tenants}
    found = queries.due_scopes(tuple(Queue), most=1_000_000)
    return {(each.queue.value, each.tenant_id, each.scope_id) for each in found if each.tenant_id in pks}


def test_due_scopes_of_every_tenant_are_found(tenant: Any, other_tenant: Any) -> None:
    make_message(tenant, queue=Queue.RUNTIME)
    make_message(other_tenant, queue=Queue.EXECUTOR)
    assert due(tenant, other_tenant) == {("runtime", tenant.pk, "scope"), ("executor", other_tenant.pk, "scope")}


def test_scope_is_due_unless_its_oldest_message_waits_or_is_held_by_one_who_is_not_silent(tenant: Any) -> None:
    make_message(tenant, scope_id="waits", due_at=now() + timedelta(minutes=1))
    for scope in ("waits", "held", "held"):
        make_message(tenant, scope_id=scope)
    held(tenant)
    assert due(tenant) == set()
    let_leases_run_out(tenant)
    assert due(tenant) == {("executor", tenant.pk, "held")}


def test_asking_for_all_tenants_leaves_the_wall_between_them_standing(tenant: Any, other_tenant: Any) -> None:
    make_message(other_tenant)
    with tenant_scope(tenant):
        queries.due_scopes(tuple(Queue))
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM bus_queuemessage WHERE tenant_id = %s", [other_tenant.pk])
            assert cursor.fetchone() == (0,)


def test_due_scope_is_found_behind_many_that_are_held(tenant: Any) -> None:
    crowd(tenant, 300, scopes=300)
    with tenant_scope(tenant):
        for number in range(300):
            held(tenant, scope_id=f"crowd-{number}")
    make_message(tenant, scope_id="zz-waits")
    assert due(tenant) == {("executor", tenant.pk, "zz-waits")}


def test_question_reads_what_is_due_and_not_what_waits(tenant: Any, superuser_dsn: str) -> None:
    """With 100,000 messages of the future the question still fetches a handful of rows."""
    crowd(tenant, 100_000, scopes=100_000, queue=Queue.UPKEEP, due_in=timedelta(days=1))
    make_message(tenant, queue=Queue.UPKEEP, scope_id="now")
    with psycopg.connect(superuser_dsn, autocommit=True) as insider:
        insider.execute("ANALYZE bus_queuemessage")  # as autovacuum does in production, at a moment of its own
    with tenant_scope(tenant):
        found = [each for each in queries.due_scopes([Queue.UPKEEP], most=10_000) if each.tenant_id == tenant.pk]
        rows = rows_fetched()
    disperse(tenant)
    assert found == [DueScope(1, tenant.pk, Queue.UPKEEP, "now", exhausted=False)]
    assert rows < 10_000


def rows_fetched() -> int:
    """Rows of the queue that this transaction has read so far, by whatever way."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'bus_queuemessage'"
        )
        return int(cursor.fetchone()[0])
