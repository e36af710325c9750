"""A migration that adds a kind of job owes it to the rows that are there already, once."""

from __future__ import annotations

from typing import Any

from django.db import connections

from apps.bus.enums import Kind
from apps.bus.models import QueueMessage
from apps.bus.sql.due import schedule_rows, unschedule_rows
from kernel.tenancy import tenant_scope
from tests.factories.approvals import open_card

WAITING = "SELECT tenant_id, id::text, expires_at FROM approvals_card WHERE status IN ('open', 'assigned')"


def carry_out(statement: str, *, times: int = 1) -> None:
    for _ in range(times):
        with connections["owner"].cursor() as cursor:
            cursor.execute(statement)


def owed(tenant: Any) -> list[QueueMessage]:
    with tenant_scope(tenant):
        return list(QueueMessage.objects.filter(kind=Kind.CARD_EXPIRY))


def test_row_is_owed_once_at_its_time(tenant: Any) -> None:
    card = open_card(tenant)
    with tenant_scope(tenant):
        QueueMessage.objects.filter(kind=Kind.CARD_EXPIRY).delete()
    carry_out(schedule_rows(Kind.CARD_EXPIRY, WAITING), times=2)
    (message,) = owed(tenant)
    assert message.subject == str(card.pk)
    assert message.available_at == card.expires_at
    assert message.message_id == f"card_expiry:{card.pk}"


def test_way_back_takes_the_jobs_of_the_kind_only(tenant: Any) -> None:
    open_card(tenant)
    with tenant_scope(tenant):
        others = QueueMessage.objects.exclude(kind=Kind.CARD_EXPIRY).count()
    carry_out(unschedule_rows(Kind.CARD_EXPIRY))
    assert owed(tenant) == []
    with tenant_scope(tenant):
        assert QueueMessage.objects.count() == others
