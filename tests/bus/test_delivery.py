"""Order, fences, attempts and the last resort, message by message."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, connection

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.bus import queries, services, signals, tasks
from apps.bus.enums import Queue, SetAside
from apps.bus.models import QueueMessage
from apps.bus.schemas import AlreadyProcessed, Lease, LeaseLost
from kernel.tenancy import ScopeError, tenant_scope
from tests.factories.bus import due_scopes, lease_any, let_leases_run_out, let_waits_pass, make_message

QUEUE = "executor"


def take(tenant: Any, **wish: Any) -> Lease | None:
    with tenant_scope(tenant):
        return lease_any(QUEUE, consumer="test", **wish)


def held(tenant: Any, **wish: Any) -> Lease:
    found = take(tenant, **wish)
    assert found is not None
    return found


def fail_four_times(tenant: Any) -> None:
    for _ in range(4):
        with tenant_scope(tenant):
            services.nack(held(tenant), reason="broken")
        let_waits_pass(tenant)


def test_enqueue_outside_a_scope_is_refused(database: None) -> None:
    with pytest.raises(ScopeError):
        services.send_message(QUEUE, kind="system_event", scope_id="s", sender="runtime")


def test_message_taint_unless_told_is_external(tenant: Any) -> None:
    assert make_message(tenant).taint == "external"


def test_trace_id_given_is_carried_unchanged(tenant: Any) -> None:
    make_message(tenant, trace_id="trace-1")
    assert held(tenant).message.trace_id == "trace-1"


def test_payload_survives_the_journey(tenant: Any) -> None:
    make_message(tenant, payload={"a": [1, None, "é"]})
    assert held(tenant).message.payload == {"a": [1, None, "é"]}


def test_enqueue_twice_with_one_id_stores_one(tenant: Any) -> None:
    first = make_message(tenant, message_id="m-1", content="first")
    second = make_message(tenant, message_id="m-1", content="second")
    assert (second.pk, second.content) == (first.pk, "first")


def test_one_message_id_on_two_queues_is_two_messages(tenant: Any) -> None:
    first = make_message(tenant, message_id="m-1")
    assert make_message(tenant, message_id="m-1", queue="proxy").pk != first.pk


def test_lease_of_an_empty_queue_is_none(tenant: Any) -> None:
    assert take(tenant) is None


def test_lease_never_sees_another_tenants_message(tenant: Any, other_tenant: Any) -> None:
    make_message(other_tenant)
    assert take(tenant) is None


def test_lease_leaves_other_queues_alone(tenant: Any) -> None:
    make_message(tenant, queue="planner")
    assert take(tenant) is None


def test_scope_with_a_leased_message_gives_no_second(tenant: Any) -> None:
    make_message(tenant)
    make_message(tenant)
    held(tenant)
    assert take(tenant) is None


def test_scope_asked_for_by_name_with_a_leased_message_gives_no_second(tenant: Any) -> None:
    make_message(tenant)
    make_message(tenant)
    held(tenant)
    assert take(tenant, scope_id="scope") is None


def test_busy_scope_does_not_hold_up_another(tenant: Any) -> None:
    make_message(tenant, scope_id="a")
    make_message(tenant, scope_id="a")
    other = make_message(tenant, scope_id="b")
    held(tenant, scope_id="a")
    assert held(tenant).message.pk == other.pk


def test_lease_takes_the_oldest_of_a_scope_first(tenant: Any) -> None:
    first = make_message(tenant)
    make_message(tenant)
    assert held(tenant).message.pk == first.pk


def test_lease_of_one_scope_passes_the_others_by(tenant: Any) -> None:
    make_message(tenant, scope_id="a")
    wanted = make_message(tenant, scope_id="b")
    assert held(tenant, scope_id="b").message.pk == wanted.pk


def test_message_that_waits_for_its_next_attempt_is_not_overtaken(tenant: Any) -> None:
    make_message(tenant)
    make_message(tenant)
    with tenant_scope(tenant):
        services.nack(held(tenant), reason="broken")
    assert (take(tenant), take(tenant, scope_id="scope")) == (None, None)


def test_acked_message_makes_room_for_the_next(tenant: Any) -> None:
    make_message(tenant)
    second = make_message(tenant)
    with tenant_scope(tenant):
        services.ack(held(tenant))
    assert held(tenant).message.pk == second.pk


def test_ack_twice_is_refused(tenant: Any) -> None:
    make_message(tenant)
    lease = held(tenant)
    with tenant_scope(tenant):
        services.ack(lease)
    with tenant_scope(tenant), pytest.raises(LeaseLost):
        services.ack(lease)


@pytest.mark.parametrize(
    "word",
    [
        services.ack,
        services.heartbeat,
        lambda lease: services.nack(lease, reason="late"),
        lambda lease: services.dead_letter(lease, "late"),
    ],
)
def test_former_holder_has_no_say(tenant: Any, word: Any) -> None:
    make_message(tenant)
    former = held(tenant)
    let_leases_run_out(tenant)
    held(tenant)
    with tenant_scope(tenant), pytest.raises(LeaseLost):
        word(former)


def mark_and_ack(tenant: Any, lease: Lease) -> None:
    with tenant_scope(tenant):
        services.mark_processed("test", lease.message.message_id)
        services.ack(lease)


def test_late_ack_undoes_what_its_transaction_did(tenant: Any) -> None:
    make_message(tenant)
    former = held(tenant)
    let_leases_run_out(tenant)
    held(tenant)
    with pytest.raises(LeaseLost):
        mark_and_ack(tenant, former)
    with tenant_scope(tenant):
        assert not services.has_processed("test", former.message.message_id)


def test_ack_after_the_sweep_took_the_message_back_is_refused(tenant: Any) -> None:
    make_message(tenant)
    former = held(tenant)
    let_leases_run_out(tenant)
    with tenant_scope(tenant):
        services.expire_leases()
    with tenant_scope(tenant), pytest.raises(LeaseLost):
        services.ack(former)


def test_heartbeat_lengthens_the_lease(tenant: Any) -> None:
    make_message(tenant)
    lease = held(tenant, seconds=1)
    with tenant_scope(tenant):
        services.heartbeat(lease, seconds=500)
        until = QueueMessage.objects.get().leased_until
    assert (until - lease.message.leased_until).total_seconds() > 400


def test_expired_lease_comes_back_and_counts_an_attempt(tenant: Any) -> None:
    make_message(tenant)
    held(tenant)
    let_leases_run_out(tenant)
    assert held(tenant).message.attempts == 1


def test_sweep_of_an_expired_lease_counts_an_attempt(tenant: Any) -> None:
    make_message(tenant)
    held(tenant)
    let_leases_run_out(tenant)
    with tenant_scope(tenant):
        services.expire_leases()
    assert held(tenant).message.attempts == 1


def test_fence_grows_with_every_delivery(tenant: Any) -> None:
    make_message(tenant)
    first = held(tenant)
    let_leases_run_out(tenant)
    assert held(tenant).fence > first.fence


def test_fifth_nack_buries_the_message(tenant: Any) -> None:
    make_message(tenant)
    fail_four_times(tenant)
    with tenant_scope(tenant):
        services.nack(held(tenant), reason="broken")
        row = QueueMessage.objects.get(queue=QUEUE)
    assert (row.state, row.attempts, row.reason) == ("dead", 5, "broken")


def test_fourth_nack_does_not_bury_it(tenant: Any) -> None:
    make_message(tenant)
    fail_four_times(tenant)
    with tenant_scope(tenant):
        assert QueueMessage.objects.get().state == "queued"


def test_fifth_silent_holder_buries_the_message_at_the_sweep(tenant: Any) -> None:
    make_message(tenant)
    fail_four_times(tenant)
    held(tenant)
    let_leases_run_out(tenant)
    with tenant_scope(tenant):
        services.expire_leases()
        row = QueueMessage.objects.get(queue=QUEUE)
    assert (row.state, row.attempts, row.reason) == ("dead", 5, "lease_expired")


def test_message_out_of_attempts_is_not_leased_again_before_the_sweep(tenant: Any) -> None:
    make_message(tenant)
    fail_four_times(tenant)
    held(tenant)
    let_leases_run_out(tenant)
    assert take(tenant) is None


def test_dead_message_lets_the_next_through(tenant: Any) -> None:
    make_message(tenant)
    second = make_message(tenant)
    with tenant_scope(tenant):
        services.dead_letter(held(tenant), "poison")
    assert held(tenant).message.pk == second.pk


def test_dead_message_that_tells_nobody_is_told_upwards(tenant: Any) -> None:
    make_message(tenant, message_id="m-1")
    told: list[Any] = []
    receiver = signals.set_aside.connect(lambda what, actor: told.append((what, actor)))
    with tenant_scope(tenant):
        services.dead_letter(held(tenant), "poison")
    signals.set_aside.disconnect(receiver)
    assert told == [(SetAside.MESSAGE, "system")]


def test_dead_message_is_audited_without_its_text(tenant: Any) -> None:
    message = make_message(tenant, content="my secret")
    with tenant_scope(tenant):
        services.dead_letter(held(tenant), "they said: my secret")
    with tenant_scope(tenant):
        entry = AuditEntry.objects.get(event=AuditEvent.MESSAGE_DEAD)
    expected = '{"attempts":1,"kind":"system_event","queue":"executor"}'
    assert (entry.subject, entry.data) == (f"message:{message.pk}", expected)


@pytest.mark.parametrize(("silent", "waiting"), [(False, []), (True, ["scope"])])
def test_leased_message_waits_for_a_consumer_once_its_holder_is_silent(
    tenant: Any, silent: bool, waiting: list[str]
) -> None:
    make_message(tenant)
    held(tenant)
    if silent:
        let_leases_run_out(tenant)
    assert due_scopes(tenant, Queue(QUEUE)) == waiting


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
    with tenant_scope(tenant):
        services.ack(held(tenant))
    held(tenant)
    with tenant_scope(tenant):
        assert services.pending_count(QUEUE, "scope") == 2


def test_processed_mark_twice_is_refused(tenant: Any) -> None:
    with tenant_scope(tenant):
        services.mark_processed("test", "m-1")
    with tenant_scope(tenant), pytest.raises(AlreadyProcessed):
        services.mark_processed("test", "m-1")


def test_processed_mark_is_each_consumers_own(tenant: Any) -> None:
    with tenant_scope(tenant):
        services.mark_processed("one", "m-1")
        assert not services.has_processed("two", "m-1")


def test_processed_mark_of_another_tenant_is_not_seen(tenant: Any, other_tenant: Any) -> None:
    with tenant_scope(other_tenant):
        services.mark_processed("test", "m-1")
    with tenant_scope(tenant):
        assert not services.has_processed("test", "m-1")


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
    with tenant_scope(tenant):
        if moment == "acked":
            services.ack(lease)
        assert queries.is_lease_held(lease.ref) is answer


def test_second_lease_in_a_scope_written_around_the_service_is_refused_by_the_database(tenant: Any) -> None:
    make_message(tenant)
    second = make_message(tenant)
    held(tenant)
    with pytest.raises(IntegrityError), tenant_scope(tenant):
        QueueMessage.objects.filter(pk=second.pk).update(state="leased", leased_until="2999-01-01T00:00:00Z")


def test_lease_is_one_statement(tenant: Any, django_assert_num_queries: Any) -> None:
    make_message(tenant)
    with tenant_scope(tenant), django_assert_num_queries(1, connection=connection):
        services.lease(QUEUE, consumer="test", scope_id="scope")


def test_enqueue_is_one_statement(tenant: Any, django_assert_num_queries: Any) -> None:
    with tenant_scope(tenant), django_assert_num_queries(1, connection=connection):
        make_message(tenant)


def test_ack_is_one_statement(tenant: Any, django_assert_num_queries: Any) -> None:
    make_message(tenant)
    lease = held(tenant)
    with tenant_scope(tenant), django_assert_num_queries(1, connection=connection):
        services.ack(lease)
