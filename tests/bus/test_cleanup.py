"""What was done with is forgotten after a while; what could still be delivered never is, nor that it had its effect."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.bus import cleanup, dead_letters, services
from apps.bus.enums import Kind, State
from apps.bus.models import Processed, QueueMessage
from apps.tenants.models import Retention
from kernel.tenancy import tenant_scope
from tests.factories.bus import crowd, disperse, lease_any, make_message
from tests.factories.upkeep import clean_up

QUEUE = "executor"
LONG_AGO = timedelta(days=8)


def close(tenant: Any, state: State = State.ACKED, *, ago: timedelta = LONG_AGO) -> QueueMessage:
    """A message that had its effect and came to this end so long ago."""
    message = make_message(tenant, queue=QUEUE)
    with tenant_scope(tenant):
        services.mark_processed("test", message.message_id)
        finished = None if state in (State.QUEUED, State.LEASED) else Now() - ago
        held = Now() + timedelta(days=1) if state == State.LEASED else None
        which = QueueMessage.objects.filter(pk=message.pk)
        which.update(state=state, finished_at=finished, leased_until=held, created_at=Now() - ago)
        Processed.objects.filter(message_id=message.message_id).update(created_at=Now() - ago)
    return message


def left(tenant: Any) -> tuple[int, int]:
    """How many messages and marks there are."""
    with tenant_scope(tenant):
        return QueueMessage.objects.exclude(kind=Kind.RETENTION).count(), Processed.objects.count()


@pytest.mark.parametrize("state", [State.ACKED, State.DROPPED])
def test_message_closed_long_ago_goes_with_its_mark(tenant: Any, state: State) -> None:
    close(tenant, state)
    clean_up(tenant)
    assert left(tenant) == (0, 0)


@pytest.mark.parametrize("state", [State.QUEUED, State.LEASED, State.DEAD])
def test_message_that_may_be_delivered_again_stays_with_its_mark(tenant: Any, state: State) -> None:
    close(tenant, state)
    clean_up(tenant)
    assert left(tenant) == (1, 1)


def test_message_closed_lately_stays_with_its_mark(tenant: Any) -> None:
    close(tenant, ago=timedelta(days=6))
    clean_up(tenant)
    assert left(tenant) == (1, 1)


def test_age_is_the_operators_to_say(tenant: Any, settings: Any) -> None:
    settings.BUS_KEEP_DAYS = 1
    close(tenant, ago=timedelta(days=2))
    clean_up(tenant)
    assert left(tenant) == (0, 0)


def test_mark_stays_while_another_queue_has_a_message_of_its_id(tenant: Any) -> None:
    message = close(tenant)
    make_message(tenant, queue="planner", message_id=message.message_id)
    clean_up(tenant)
    assert left(tenant) == (1, 1)


def test_mark_goes_with_the_last_message_of_its_id(tenant: Any) -> None:
    message = close(tenant)
    other = make_message(tenant, queue="planner", message_id=message.message_id)
    clean_up(tenant)
    with tenant_scope(tenant):
        QueueMessage.objects.filter(pk=other.pk).update(state=State.ACKED, finished_at=Now() - LONG_AGO)
    clean_up(tenant)
    assert left(tenant) == (0, 0)


def test_dead_message_tried_again_after_the_upkeep_has_its_effect_no_second_time(tenant: Any, owner: Any) -> None:
    message = close(tenant, State.DEAD)
    clean_up(tenant)
    with tenant_scope(tenant):
        dead_letters.retry(message.pk, user=owner)
        lease = lease_any(QUEUE, consumer="test", names=["test"])
    assert lease is not None and lease.processed


def test_one_batch_is_bounded(tenant: Any) -> None:
    crowd(tenant, cleanup.BATCH + 1, scopes=1)
    age_all(tenant)
    with tenant_scope(tenant):
        more = cleanup.delete_closed_messages()
    assert (more, left(tenant)[0]) == (True, 1)


def test_upkeep_goes_on_until_nothing_old_is_left(tenant: Any) -> None:
    crowd(tenant, cleanup.BATCH + 1, scopes=1)
    age_all(tenant)
    clean_up(tenant)
    assert left(tenant)[0] == 0


def test_upkeep_leaves_other_tenants_alone(tenant: Any, other_tenant: Any) -> None:
    close(other_tenant)
    with tenant_scope(tenant):
        cleanup.delete_closed_messages()
    assert left(other_tenant) == (1, 1)


def test_what_was_cleared_is_counted_in_the_audit_log(tenant: Any) -> None:
    close(tenant)
    clean_up(tenant)
    clean_up(tenant)
    with tenant_scope(tenant):
        (entry,) = AuditEntry.objects.filter(event=AuditEvent.MESSAGES_CLEARED)
    assert json.loads(entry.data) == {"messages": 1, "marks": 1}


def age_all(tenant: Any) -> None:
    disperse(tenant)
    with tenant_scope(tenant):
        QueueMessage.objects.update(finished_at=Now() - LONG_AGO)


@pytest.mark.parametrize(("days", "there"), [(7, (0, 0)), (9, (1, 1))])
def test_company_says_how_long_messages_are_kept(tenant: Any, days: int, there: tuple[int, int]) -> None:
    with tenant_scope(tenant):
        Retention.objects.create(message_days=days)
    close(tenant)
    clean_up(tenant)
    assert left(tenant) == there
