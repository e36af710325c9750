"""After an upgrade the bus holds messages for everything that the former tick would have found."""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module
from typing import Any

from django.db import connection, transaction
from django.db.models.functions import Now

from apps.autonomy import services
from apps.autonomy.enums import TriggerKind
from apps.autonomy.services import admission
from apps.bus.models import QueueMessage
from kernel.tenancy import tenant_scope
from tests.factories.autonomy import House

OWE = import_module("apps.autonomy.migrations.0006_due_on_the_bus").OWE


def test_everything_that_waited_is_owed_once(house: House, other_tenant: Any) -> None:
    timed = house.trigger(house.task(), TriggerKind.INTERVAL, seconds=3600)
    heard = house.trigger(house.task(), TriggerKind.EVENT, topic="work_ended")
    off = house.trigger(house.task(), TriggerKind.INTERVAL, seconds=3600)
    house.do(services.change_trigger, off.pk, user=house.owner, enabled=False)
    house.do(services.record_occurrence, "event:work_ended")
    running = house.run_now(house.task())
    house.do(admission.admit_waiting)
    waiting = house.run_now(house.task())
    house.change(waiting, not_before=Now() + timedelta(minutes=5))
    with transaction.atomic():
        with tenant_scope(house.tenant):
            QueueMessage.objects.all().delete()
        with connection.cursor() as cursor:
            for _ in range(2):
                cursor.execute(OWE)
        with tenant_scope(house.tenant):
            rows = QueueMessage.objects.values_list("kind", "queue", "scope_id")
            owed = sorted((kind, queue, scope.removeprefix(f"{kind}:")) for kind, queue, scope in rows)
            next_at = QueueMessage.objects.get(scope_id=f"trigger_due:{timed.pk}").available_at
            admitted_at = QueueMessage.objects.get(scope_id=f"session_admission:{waiting.pk}").available_at
        with tenant_scope(other_tenant):
            of_another = QueueMessage.objects.count()
        transaction.set_rollback(True)
    assert owed == sorted(
        [
            ("trigger_due", "upkeep", str(timed.pk)),
            ("trigger_due", "upkeep", str(heard.pk)),
            ("session_watch", "upkeep", str(running.pk)),
            ("session_admission", "upkeep", str(waiting.pk)),
            ("suggestion_look", "trusted", str(house.tenant.pk)),
        ]
    )
    assert next_at == timed.next_at
    assert admitted_at == house.session(waiting.pk).not_before
    assert of_another == 0
