"""Order, fences, attempts and the last resort, message by message."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.bus import queries, services, signals, tasks
from apps.bus.enums import SetAside
from apps.bus.models import Processed, QueueMessage
from apps.bus.schemas import AlreadyProcessed, LeaseLost
from kernel.clock import now
from kernel.tenancy import ScopeError, tenant_scope
from tests.bus.conftest import held, row, take
from tests.factories.bus import let_leases_run_out, let_waits_pass, make_message

QUEUE = "executor"


def say(tenant: Any, word: Any, *args: Any, **more: Any) -> Any:
    with tenant_scope(tenant):
        return word(*args, **more)


def marks(tenant: Any) -> list[tuple[str, str]]:
    with tenant_scope(tenant):
        return list(Processed.objects.values_list("consumer", "message_id"))


def test_enqueue_outside_a_scope_is_refused(database: None) -> None:
    with pytest.raises(ScopeError):
        services.send_message(QUEUE, kind="system_event", scope_id="s", sender="runtime")


def test_message_arrives_as_it_was_sent_and_external_unless_told(tenant: Any) -> None:
    make_message(tenant, trace_id="trace-1", payload={"a": [1, None, "é"]})
    message = held(tenant).message
    assert message.taint == "external"
    assert message.trace_id == "trace-1"
    assert message.payload == {"a": [1, None, "é"]}


def test_enqueue_twice_with_one_id_stores_one_on_each_queue(tenant: Any) -> None:
    first, second = (make_message(tenant, message_id="m-1", content=content) for content in ("first", "second"))
    assert second.pk == first.pk
    assert second.content == "first"
    assert make_message(tenant, message_id="m-1", queue="proxy").pk != first.pk


def test_lease_sees_its_own_queue_and_tenant_alone(tenant: Any, other_tenant: Any) -> None:
    make_message(other_tenant)
    make_message(tenant, queue="planner")
    assert take(tenant) is None


def test_late_ack_undoes_what_its_transaction_did(tenant: Any) -> None:
    make_message(tenant)
    former = held(tenant)
    let_leases_run_out(tenant)
    held(tenant)

    def mark_and_ack() -> None:
        services.mark_processed("test", former.message.message_id)
        services.ack(former)

    with pytest.raises(LeaseLost):
        say(tenant, mark_and_ack)
    assert marks(tenant) == []


def test_heartbeat_lengthens_the_lease(tenant: Any) -> None:
    make_message(tenant)
    lease = held(tenant, seconds=1)
    say(tenant, services.heartbeat, lease, seconds=500)
    assert (row(tenant, queue=QUEUE).leased_until - lease.message.leased_until).total_seconds() > 400


def test_wait_for_the_next_attempt_doubles(tenant: Any) -> None:
    make_message(tenant)
    for wait in (timedelta(seconds=seconds) for seconds in (1, 2, 4, 8)):
        lease, before = held(tenant), now()
        say(tenant, services.nack, lease, reason="broken")
        assert before + wait <= row(tenant, queue=QUEUE).available_at <= now() + wait
        let_waits_pass(tenant)


def test_dead_message_that_tells_nobody_is_told_upwards_and_audited_without_its_text(tenant: Any) -> None:
    message = make_message(tenant, content="my secret")
    told: list[Any] = []
    receiver = signals.set_aside.connect(lambda what, actor: told.append((what, actor)))
    say(tenant, services.dead_letter, held(tenant), "they said: my secret")
    signals.set_aside.disconnect(receiver)
    assert told == [(SetAside.MESSAGE, "system")]
    with tenant_scope(tenant):
        entry = AuditEntry.objects.get(event=AuditEvent.MESSAGE_DEAD)
    assert entry.subject == f"message:{message.pk}"
    assert entry.data == '{"attempts":1,"kind":"system_event","queue":"executor"}'


def test_what_a_process_that_was_ended_held_is_given_back_in_every_tenant(tenant: Any, other_tenant: Any) -> None:
    for one in (tenant, other_tenant):
        make_message(one)
        held(one)
    tasks.release_leases("another")
    assert [take(one) for one in (tenant, other_tenant)] == [None, None]
    tasks.release_leases("test")
    assert [held(one).message.attempts for one in (tenant, other_tenant)] == [1, 1]


def test_pending_count_counts_the_leased_and_not_the_finished(tenant: Any) -> None:
    for _ in range(3):
        make_message(tenant)
    say(tenant, services.ack, held(tenant))
    held(tenant)
    assert say(tenant, queries.pending_count, QUEUE, "scope") == 2


def test_processed_mark_is_each_consumers_and_tenants_own_and_made_once(tenant: Any, other_tenant: Any) -> None:
    say(tenant, services.mark_processed, "one", "m-1")
    say(tenant, services.mark_processed, "two", "m-1")
    say(other_tenant, services.mark_processed, "one", "m-1")
    assert sorted(marks(tenant)) == [("one", "m-1"), ("two", "m-1")]
    with pytest.raises(AlreadyProcessed):
        say(tenant, services.mark_processed, "one", "m-1")


@pytest.mark.parametrize(
    ("moment", "answer"), [("held", True), ("expired", False), ("acked", False), ("retaken", False)]
)
def test_lease_held_knows_whose_it_is(tenant: Any, moment: str, answer: bool) -> None:
    make_message(tenant)
    lease = held(tenant)
    if moment in ("expired", "retaken"):
        let_leases_run_out(tenant)
    if moment == "retaken":
        held(tenant)
    if moment == "acked":
        say(tenant, services.ack, lease)
    assert say(tenant, lambda: queries.lease_held(lease.ref).value) is answer


def test_second_lease_in_a_scope_written_around_the_service_is_refused_by_the_database(tenant: Any) -> None:
    make_message(tenant)
    second = make_message(tenant)
    held(tenant)
    with pytest.raises(IntegrityError), tenant_scope(tenant):
        QueueMessage.objects.filter(pk=second.pk).update(state="leased", leased_until="2999-01-01T00:00:00Z")


def test_enqueue_lease_and_ack_are_one_statement_each(tenant: Any, django_assert_num_queries: Any) -> None:
    with tenant_scope(tenant), django_assert_num_queries(1, connection=connection):
        make_message(tenant)
    with tenant_scope(tenant), django_assert_num_queries(1, connection=connection):
        lease = services.lease(QUEUE, consumer="test", scope_id="scope")
    assert lease is not None
    with tenant_scope(tenant), django_assert_num_queries(1, connection=connection):
        services.ack(lease)
