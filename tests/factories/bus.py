"""Messages for tests of the bus and of the rooms that use it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models.functions import Now

from apps.bus import queries
from apps.bus.deliveries import deliver
from apps.bus.enums import LIVE, Kind, Queue, Sender
from apps.bus.models import QueueMessage
from apps.bus.schemas import Lease
from apps.bus.services import lease, send_message
from apps.bus.workers import Worker
from kernel.ratelimit.fixed_window import redis_client
from kernel.tenancy import in_scope, in_thread, tenant_scope
from silas_platform.worker_watchdog import count_waiting


def make_message(tenant: Any, *, scope_id: str = "scope", queue: str = Queue.EXECUTOR, **fields: Any) -> QueueMessage:
    with tenant_scope(tenant):
        return send_message(
            queue, **{"kind": Kind.SYSTEM_EVENT, "scope_id": scope_id, "sender": Sender.RUNTIME, **fields}
        )


def lease_any(queue: str, *, consumer: str, scope_id: Any = None, kind: str = "", **fields: Any) -> Lease | None:
    """Lease a message of one scope or of any, of one kind or of any, the oldest first, in the tenant whose scope is
    open."""
    if scope_id is not None:
        return lease(queue, consumer=consumer, scope_id=scope_id, **fields)
    live = QueueMessage.objects.filter(queue=queue, state__in=LIVE, kind__startswith=kind).order_by("position")
    for name in dict.fromkeys(live.values_list("scope_id", flat=True)):
        if found := lease(queue, consumer=consumer, scope_id=name, **fields):
            return found
    return None


def due_scopes(tenant: Any, *queues: Queue) -> list[str]:
    """The tenant's scopes that are due, by name."""
    found = queries.due_scopes(queues or tuple(Queue), most=1_000_000)
    return sorted(each.scope_id for each in found if each.tenant_id == tenant.pk and not each.exhausted)


def let_leases_run_out(tenant: Any, **which: Any) -> None:
    """As if every holder had been silent for longer than its lease."""
    with tenant_scope(tenant):
        QueueMessage.objects.filter(state="leased", **which).update(leased_until=Now())


def let_waits_pass(tenant: Any, **which: Any) -> None:
    with tenant_scope(tenant):
        QueueMessage.objects.filter(state="queued", **which).update(available_at=Now())


def carry_out_kinds(tenant: Any, *kinds: Kind, consumer: str = "test") -> None:
    """Whatever the tenant is owed of these kinds is due now and is carried out, once."""
    asyncio.run(carry_out_due(getattr(tenant, "pk", tenant), *kinds, consumer=consumer))


async def carry_out_due(tenant_id: UUID, *kinds: Kind, consumer: str = "test") -> None:
    """`carry_out_kinds`, for callers on an event loop."""
    await in_thread(let_waits_pass, tenant_id, kind__in=kinds)
    for queue, scope in await in_scope(tenant_id, _owed, kinds):
        held = await in_scope(tenant_id, lease, queue, consumer=consumer, scope_id=scope)
        if held is not None:
            await deliver(tenant_id, held, seconds=120)


def _owed(kinds: tuple[Kind, ...]) -> list[tuple[str, str]]:
    owed = QueueMessage.objects.filter(state__in=LIVE, kind__in=kinds).order_by("position")
    return list(owed.values_list("queue", "scope_id"))


_CROWD = """
    INSERT INTO bus_queuemessage (id, tenant_id, queue, kind, message_id, trace_id, scope_id, content, sender, taint,
                                  urgency, error_code, origin_agent, state, attempts, consumer, fence, reason,
                                  available_at)
    SELECT gen_random_uuid(), %s, %s, 'system_event', 'crowd-' || n, 't', 'crowd-' || n %% %s, '', 'runtime',
           'external', 'informational', '', '', 'queued', 0, '', 0, '',
           statement_timestamp() + %s FROM generate_series(1, %s) n
"""


def crowd(
    tenant: Any, messages: int, *, scopes: int, queue: str = Queue.EXECUTOR, due_in: timedelta = timedelta()
) -> None:
    """Very many messages at once, spread over so many scopes."""
    with tenant_scope(tenant), connection.cursor() as cursor:
        cursor.execute(_CROWD, [tenant.pk, str(queue), scopes, due_in, messages])


def disperse(tenant: Any) -> None:
    """Whatever of the tenant's still waits is done with."""
    with tenant_scope(tenant):
        QueueMessage.objects.filter(state="queued").update(state="acked", finished_at=Now())


def pokes(worker: Worker = Worker.WORK) -> int:
    """How many wake-ups wait at the broker for this kind of worker."""
    return count_waiting(worker)


def forget_pokes() -> None:
    redis_client().delete(*Worker)
