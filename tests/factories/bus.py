"""Messages for tests of the bus and of the rooms that use it."""

from __future__ import annotations

from typing import Any

from django.db import connection
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


_CROWD = """
    INSERT INTO bus_queuemessage (id, tenant_id, queue, kind, message_id, trace_id, scope_id, content, sender, taint,
                                  urgency, error_code, origin_agent, state, attempts, consumer, fence, reason)
    SELECT gen_random_uuid(), %s, %s, 'system_event', 'crowd-' || n, 't', 'crowd-' || n %% %s, '', 'runtime',
           'external', 'informational', '', '', 'queued', 0, '', 0, '' FROM generate_series(1, %s) n
"""


def crowd(tenant: Any, messages: int, *, scopes: int, queue: str = Queue.EXECUTOR) -> None:
    """Very many messages at once, spread over so many scopes."""
    with tenant_scope(tenant), connection.cursor() as cursor:
        cursor.execute(_CROWD, [tenant.pk, str(queue), scopes, messages])


def disperse(tenant: Any) -> None:
    """Whatever of the tenant's still waits is done with."""
    with tenant_scope(tenant):
        QueueMessage.objects.filter(state="queued").update(state="acked", finished_at=Now())
