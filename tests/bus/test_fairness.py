"""Nobody's crowd stands in front of somebody else's one: between tenants, and between the scopes of a tenant."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection

from apps.bus import draining, queries, services
from apps.bus.deliveries import Delivery
from apps.bus.enums import Queue
from apps.bus.models import QueueMessage
from kernel.tenancy import tenant_scope
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


def place_of(found: list[tuple[Any, str]], tenant: Any, scope: str) -> int:
    return found.index((tenant.pk, scope))


@pytest.mark.parametrize("scopes", [1, CROWD])
def test_crowd_of_one_tenant_does_not_stand_before_anothers_message(
    tenant: Any, other_tenant: Any, served: Any, drain: Any, monkeypatch: Any, scopes: int
) -> None:
    monkeypatch.setattr(draining, "SHIFT_SECONDS", 0.5)
    crowd(tenant, CROWD, scopes=scopes, queue=Queue.RUNTIME)
    make_message(other_tenant, queue=Queue.RUNTIME, scope_id="alone")
    drain()
    before = [served_tenant for served_tenant, _ in served[: place_of(served, other_tenant, "alone")]]
    assert before.count(tenant.pk) <= draining.TURN_MESSAGES


def test_poke_for_a_crowd_holds_another_tenant_up_for_one_turn(
    tenant: Any, other_tenant: Any, served: Any, drain: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(draining, "SHIFT_SECONDS", 0.5)
    crowd(tenant, CROWD, scopes=7, queue=Queue.RUNTIME)
    make_message(other_tenant, queue=Queue.RUNTIME, scope_id="alone")
    drain(first=(Queue.RUNTIME, tenant.pk))
    before = [one for one, _ in served[: place_of(served, other_tenant, "alone")] if one == tenant.pk]
    assert len(before) == draining.TURN_MESSAGES


def test_crowd_in_one_scope_does_not_stand_before_another_scopes_message(
    tenant: Any, served: Any, drain: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(draining, "SHIFT_SECONDS", 0.5)
    crowd(tenant, CROWD, scopes=1, queue=Queue.RUNTIME)
    make_message(tenant, queue=Queue.RUNTIME, scope_id="zz-alone")
    drain()
    mine = [one for one in served if one[0] == tenant.pk]
    assert place_of(mine, tenant, "zz-alone") <= 1


def test_scopes_of_a_tenant_are_served_in_turn(tenant: Any, served: Any, drain: Any) -> None:
    for number in range(9):
        make_message(tenant, queue=Queue.RUNTIME, scope_id="abc"[number % 3])
    drain()
    mine = [scope for tenant_id, scope in served if tenant_id == tenant.pk]
    assert [sorted(mine[start : start + 3]) for start in (0, 3, 6)] == [["a", "b", "c"]] * 3


def test_tenants_are_served_in_turn(tenant: Any, other_tenant: Any, served: Any, drain: Any) -> None:
    for one in (tenant, other_tenant):
        crowd(one, 3 * draining.TURN_MESSAGES, scopes=5, queue=Queue.RUNTIME)
    drain()
    ours = {tenant.pk, other_tenant.pk}
    order = [tenant_id for tenant_id, _ in served if tenant_id in ours]
    turns = [set(order[start : start + draining.TURN_MESSAGES]) for start in range(0, len(order), 16)]
    assert len(turns) == 6 and all(len(turn) == 1 and turn != following for turn, following in pairwise(turns))


def test_next_shift_goes_on_where_the_last_one_ended(
    tenant: Any, other_tenant: Any, served: Any, drain: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(draining, "SHIFT_SECONDS", 0.0)
    for one in (tenant, other_tenant):
        crowd(one, 100, scopes=5, queue=Queue.RUNTIME)
    for _ in range(40):
        drain()
    assert {tenant.pk, other_tenant.pk} <= {tenant_id for tenant_id, _ in served}


def test_shift_that_ends_before_the_work_wakes_somebody(tenant: Any, served: Any, drain: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(draining, "SHIFT_SECONDS", 0.0)
    woken: list[int] = []
    monkeypatch.setattr(draining.wakeup, "poke", lambda: woken.append(1))
    crowd(tenant, 2, scopes=2, queue=Queue.RUNTIME)
    drain()
    assert woken


def lines(*tenants: Any) -> set[tuple[str, Any]]:
    pks = {one.pk for one in tenants}
    return {(queue.value, pk) for queue, pk in queries.waiting_lines(tuple(Queue)) if pk in pks}


def test_lines_are_found_of_every_tenant(tenant: Any, other_tenant: Any) -> None:
    make_message(tenant, queue=Queue.RUNTIME)
    make_message(other_tenant, queue=Queue.EXECUTOR)
    assert lines(tenant, other_tenant) == {("runtime", tenant.pk), ("executor", other_tenant.pk)}


def test_line_whose_only_scope_is_held_does_not_wait(tenant: Any) -> None:
    make_message(tenant)
    make_message(tenant)
    with tenant_scope(tenant):
        services.lease("executor", consumer="test")
    assert lines(tenant) == set()


def test_line_whose_holder_is_silent_waits(tenant: Any) -> None:
    make_message(tenant)
    with tenant_scope(tenant):
        services.lease("executor", consumer="test")
    let_leases_run_out(tenant)
    assert lines(tenant) == {("executor", tenant.pk)}


def test_asking_for_all_lines_leaves_the_wall_between_tenants_standing(tenant: Any, other_tenant: Any) -> None:
    make_message(other_tenant)
    with tenant_scope(tenant):
        queries.waiting_lines(tuple(Queue))
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM bus_queuemessage WHERE tenant_id = %s", [other_tenant.pk])
            assert cursor.fetchone() == (0,)


def test_waiting_scopes_are_found_behind_many_that_are_held(tenant: Any) -> None:
    crowd(tenant, 300, scopes=300)
    with tenant_scope(tenant):
        for _ in range(300):
            services.lease("executor", consumer="test")
    make_message(tenant, scope_id="zz-waits")
    with tenant_scope(tenant):
        assert queries.waiting_scopes("executor") == ["zz-waits"]


def test_crowd_is_what_it_says(tenant: Any) -> None:
    crowd(tenant, 30, scopes=3)
    with tenant_scope(tenant):
        assert QueueMessage.objects.count() == 30
        assert QueueMessage.objects.values("scope_id").distinct().count() == 3
