"""What was done with is forgotten after a while; what could still be delivered never is, nor that it had its effect."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.bus import dead_letters, retention, services
from apps.bus.enums import Kind, State
from apps.bus.models import Processed, QueueMessage
from apps.tenants.models import Retention
from kernel.tenancy import tenant_scope
from tests.bus.conftest import held
from tests.factories.bus import crowd, disperse, make_message
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


@pytest.mark.parametrize(
    ("state", "days", "there"),
    [
        *((state, 8, (0, 0)) for state in (State.ACKED, State.DROPPED)),
        *((state, 8, (1, 1)) for state in (State.QUEUED, State.LEASED, State.DEAD)),
        (State.ACKED, 6, (1, 1)),
    ],
)
def test_message_closed_long_ago_goes_with_its_mark_and_no_other(
    tenant: Any, other_tenant: Any, state: State, days: int, there: tuple[int, int]
) -> None:
    close(other_tenant)
    close(tenant, state, ago=timedelta(days=days))
    clean_up(tenant)
    assert left(tenant) == there
    assert left(other_tenant) == (1, 1)


@pytest.mark.parametrize(
    ("operator", "company", "ago", "there"),
    [(1, None, 2, (0, 0)), (7, 7, 8, (0, 0)), (7, 9, 8, (1, 1))],
)
def test_age_is_the_operators_to_say_and_then_the_companys(
    tenant: Any, settings: Any, operator: int, company: int | None, ago: int, there: tuple[int, int]
) -> None:
    settings.BUS_KEEP_DAYS = operator
    if company is not None:
        with tenant_scope(tenant):
            Retention.objects.create(message_days=company)
    close(tenant, ago=timedelta(days=ago))
    clean_up(tenant)
    assert left(tenant) == there


def test_mark_goes_with_the_last_message_of_its_id_on_any_queue(tenant: Any) -> None:
    message = close(tenant)
    other = make_message(tenant, queue="planner", message_id=message.message_id)
    clean_up(tenant)
    assert left(tenant) == (1, 1)
    with tenant_scope(tenant):
        QueueMessage.objects.filter(pk=other.pk).update(state=State.ACKED, finished_at=Now() - LONG_AGO)
    clean_up(tenant)
    assert left(tenant) == (0, 0)


def test_dead_message_tried_again_after_the_upkeep_has_its_effect_no_second_time(tenant: Any, owner: Any) -> None:
    message = close(tenant, State.DEAD)
    clean_up(tenant)
    with tenant_scope(tenant):
        dead_letters.retry(message.pk, user=owner)
    assert held(tenant, names=["test"]).processed


def test_one_batch_is_bounded_and_upkeep_goes_on_until_nothing_old_is_left(tenant: Any) -> None:
    crowd(tenant, retention.BATCH + 2, scopes=1)
    disperse(tenant)
    with tenant_scope(tenant):
        QueueMessage.objects.update(finished_at=Now() - LONG_AGO)
        assert retention.delete_closed_messages() is True
    assert left(tenant)[0] == 2
    clean_up(tenant)
    assert left(tenant)[0] == 0


def test_what_was_cleared_is_counted_in_the_audit_log(tenant: Any) -> None:
    close(tenant)
    clean_up(tenant)
    clean_up(tenant)
    with tenant_scope(tenant):
        (entry,) = AuditEntry.objects.filter(event=AuditEvent.MESSAGES_CLEARED)
    assert json.loads(entry.data) == {"messages": 1, "marks": 1}
