"""Many hands reach for the same message, and holders die in the middle."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db import connection

from apps.bus import services
from apps.bus.models import QueueMessage
from apps.bus.schemas import AlreadyProcessed, Lease
from kernel.tenancy import tenant_scope
from tests.bus.conftest import held, take
from tests.factories.bus import make_message
from tests.rivals import race

RIVALS = 8
QUEUE = "executor"


def all_at_once(step: Callable[[int], Any]) -> list[Any]:
    return race(*(partial(step, number) for number in range(RIVALS)))


def leasing(tenant: Any, **wish: Any) -> Callable[[int], Lease | None]:
    return lambda number: take(tenant, consumer=f"rival-{number}", **wish)


@pytest.mark.parametrize("scope_id", [None, "scope"])
@pytest.mark.parametrize("repeat", range(10))
def test_rivals_for_one_scope_find_one_holder(tenant: Any, scope_id: str | None, repeat: int) -> None:
    for _ in range(3):
        make_message(tenant)
    taken = [lease for lease in all_at_once(leasing(tenant, scope_id=scope_id)) if lease]
    assert [lease.message.fence for lease in taken] == [1]


def test_rivals_for_many_scopes_get_a_message_each(tenant: Any) -> None:
    for number in range(RIVALS):
        make_message(tenant, scope_id=f"s-{number}")
    for _ in range(RIVALS):
        all_at_once(leasing(tenant))
    with tenant_scope(tenant):
        assert QueueMessage.objects.filter(state="leased", fence=1).count() == RIVALS


def test_rivals_draining_a_queue_keep_every_scope_in_order(tenant: Any) -> None:
    for number in range(40):
        make_message(tenant, scope_id=f"s-{number % 4}", payload={"n": number})
    done: list[tuple[str, int]] = []

    def drain(number: int) -> None:
        for _ in range(60):
            if lease := take(tenant, consumer=f"rival-{number}"):
                with tenant_scope(tenant):
                    services.ack(lease)
                    done.append((lease.message.scope_id, lease.message.payload["n"]))

    all_at_once(drain)
    orders = [[n for scope, n in done if scope == f"s-{number}"] for number in range(4)]
    assert orders == [list(range(number, 40, 4)) for number in range(4)]


def test_enqueue_of_one_id_by_rivals_stores_one(tenant: Any) -> None:
    all_at_once(lambda _: make_message(tenant, message_id="m-1").pk)
    with tenant_scope(tenant):
        assert QueueMessage.objects.count() == 1


def late_older_message(tenant: Any) -> None:
    """The scope's older message commits while its younger one is already leased."""
    written, commit = threading.Event(), threading.Event()

    def slow_writer() -> None:
        try:
            with tenant_scope(tenant):
                services.send_message(QUEUE, kind="system_event", scope_id="scope", sender="runtime")
                written.set()
                commit.wait(60)
        finally:
            connection.close()

    writer = threading.Thread(target=slow_writer)
    writer.start()
    written.wait(60)
    make_message(tenant)
    held(tenant)
    commit.set()
    writer.join()


@pytest.mark.parametrize("scope_id", [None, "scope"])
def test_older_message_written_late_gives_its_scope_no_second_holder_and_holds_up_no_other(
    tenant: Any, scope_id: str | None
) -> None:
    late_older_message(tenant)
    assert leasing(tenant, scope_id=scope_id)(1) is None
    other = make_message(tenant, scope_id="other")
    assert held(tenant).message.pk == other.pk


def test_mark_by_rivals_counts_once(tenant: Any) -> None:
    def effect(_: int) -> bool:
        try:
            with tenant_scope(tenant):
                services.mark_processed("test", "m-1")
        except AlreadyProcessed:
            return False
        return True

    assert sum(all_at_once(effect)) == 1
