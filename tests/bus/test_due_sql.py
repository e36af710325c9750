"""What waited in the rooms' own columns before an update is owed by the bus after it, once."""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from apps.bus.enums import Kind
from apps.bus.models import QueueMessage
from apps.bus.sql.due import schedule_rows
from apps.work.enums import Waiting
from apps.work.models import Course
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.approvals import open_card
from tests.factories.connections import make_connection
from tests.factories.work import make_desk

CARDS = import_module("apps.approvals.migrations.0010_card_expiry").WAITING
WORK = import_module("apps.work.migrations.0006_waits_and_looks_are_due_on_the_bus")
CONNECTIONS = import_module("apps.connections.migrations.0002_work_is_due_on_the_bus").OWED


def update(tenant: Any, kind: Kind, rows: str) -> QueueMessage:
    """The update of an installation that owed nothing by the bus, twice; what the tenant is owed after it."""
    with tenant_scope(tenant):
        QueueMessage.objects.filter(kind=kind).delete()
    for _ in range(2):
        with connections["owner"].cursor() as cursor:
            cursor.execute(schedule_rows(kind, rows))
    with tenant_scope(tenant):
        found: QueueMessage = QueueMessage.objects.filter(kind=kind).get()
    return found


def test_card_that_waits_is_owed_its_time_out(tenant: Any) -> None:
    card = open_card(tenant)
    message = update(tenant, Kind.CARD_EXPIRY, CARDS)
    assert message.subject == str(card.pk)
    assert message.available_at == card.expires_at
    assert message.message_id == f"card_expiry:{card.pk}"


def test_work_that_waits_is_owed_the_end_of_its_wait(tenant: Any, tmp_path: Path, approver: Any) -> None:
    item, until = make_desk(tenant, tmp_path).approved(approver), now() + timedelta(minutes=5)
    with tenant_scope(tenant):
        Course.objects.update_or_create(
            work_item=item, defaults={"waiting_for": Waiting.GUIDANCE, "waiting_until": until}
        )
    message = update(tenant, Kind.WAIT_END, WORK.WAITS)
    assert message.subject == str(item.pk)
    assert message.available_at == until


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (Kind.CONNECTION_CHECK, {"next_check_at": now() + timedelta(hours=1)}),
        (Kind.CONNECTION_DISCOVERY, {"status": "proposed", "discovering": True}),
    ],
)
def test_connection_is_owed_what_it_waits_for(tenant: Any, kind: Kind, fields: dict[str, Any]) -> None:
    row = make_connection(tenant, **fields)
    message = update(tenant, kind, CONNECTIONS[kind])
    assert message.subject == str(row.pk)
