"""Messages for tests of the bus and of the rooms that use it."""

from __future__ import annotations

from typing import Any

from django.db.models.functions import Now

from apps.bus.enums import Kind, Queue, Sender
from apps.bus.models import QueueMessage
from apps.bus.services import enqueue
from kernel.tenancy import tenant_scope


def make_message(tenant: Any, *, scope_id: str = "scope", queue: str = Queue.EXECUTOR, **fields: Any) -> QueueMessage:
    with tenant_scope(tenant):
        return enqueue(queue, **{"kind": Kind.SYSTEM_EVENT, "scope_id": scope_id, "sender": Sender.RUNTIME, **fields})


def let_leases_run_out(tenant: Any, **which: Any) -> None:
    """As if every holder had been silent for longer than its lease."""
    with tenant_scope(tenant):
        QueueMessage.objects.filter(state="leased", **which).update(leased_until=Now())


def let_waits_pass(tenant: Any) -> None:
    with tenant_scope(tenant):
        QueueMessage.objects.filter(state="queued").update(available_at=Now())
