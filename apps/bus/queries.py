"""What waits, what is held, what has been done? Reads of the bus, inside a scope."""

from __future__ import annotations

from uuid import UUID

from django.db import connection
from django.db.models import Q
from django.db.models.functions import Now

from apps.bus import rules
from apps.bus.enums import State
from apps.bus.models import Processed, QueueMessage
from apps.bus.schemas import LeaseRef
from kernel.tenancy import current_tenant_id

_SCOPES_A_SWEEP = 200
_PENDING = """
    SELECT count(*) FROM bus_queuemessage
    WHERE tenant_id = %s AND queue = %s AND scope_id = %s AND state IN ('queued', 'leased')
"""


def pending_count(queue: str, scope_id: UUID | str) -> int:
    """How many messages of the scope are not finished, the leased one included."""
    with connection.cursor() as cursor:
        cursor.execute(_PENDING, [current_tenant_id(), queue, str(scope_id)])
        (count,) = cursor.fetchone()
    return int(count)


def has_processed(consumer: str, message_id: str) -> bool:
    found: bool = Processed.objects.filter(consumer=consumer, message_id=message_id).exists()
    return found


def lease_held(ref: LeaseRef) -> bool:
    """Is the lease still its holder's? True until its time has run out."""
    held = QueueMessage.objects.filter(pk=ref.message_pk, fence=ref.fence, leased_until__gt=Now())
    return bool(held.exists())


def waiting_scopes() -> dict[str, list[str]]:
    """Queue → scopes with a message that may be delivered now, a silent holder's included; at most 200 of them."""
    due = Q(state=State.QUEUED, available_at__lte=Now())
    let_go = Q(leased_until__lte=Now(), attempts__lt=rules.MAX_ATTEMPTS - 1)
    scopes = QueueMessage.objects.filter(due | let_go).order_by().values_list("queue", "scope_id").distinct()
    found: dict[str, list[str]] = {}
    for queue, scope_id in scopes[:_SCOPES_A_SWEEP]:
        found.setdefault(queue, []).append(scope_id)
    return found
