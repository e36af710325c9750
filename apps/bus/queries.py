"""What waits, what is held, what has been done? Reads of the bus, inside a scope."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Count, Min, Q

from apps.bus import rules
from apps.bus.enums import LIVE, Queue, State
from apps.bus.models import QueueMessage
from apps.bus.schemas import LeaseRef
from kernel.tenancy import current_tenant_id
from kernel.tenancy.rows import Question, ask, first

_SCOPES_A_SWEEP = 200
_PENDING = """
    SELECT count(*) FROM bus_queuemessage
    WHERE tenant_id = %s AND queue = %s AND scope_id = %s AND state IN ('queued', 'leased')
"""
_LEASE_HELD = """
    SELECT FROM bus_queuemessage
    WHERE tenant_id = %s AND id = %s AND fence = %s AND leased_until > statement_timestamp()
"""
_PROCESSED = "SELECT FROM bus_processed WHERE tenant_id = %s AND consumer = %s AND message_id = %s"
_WAITING_SCOPES = "SELECT * FROM bus_waiting_scopes(%s, %s, %s, %s)"
_WAITING_LINES = "SELECT queue, tenant_id FROM bus_waiting_lines(%s::text[], %s)"


def pending_count(queue: str, scope_id: UUID | str) -> int:
    """How many messages of the scope are not finished, the leased one included."""
    (count,) = ask(pending(queue, scope_id))
    return count


def pending(queue: str, scope_id: UUID | str) -> Question[int]:
    """`pending_count` for whoever asks more in the same round trip."""
    return Question(_PENDING, [current_tenant_id(), queue, str(scope_id)], first)


def has_processed(consumer: str, message_id: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(_PROCESSED, [current_tenant_id(), consumer, message_id])
        return cursor.fetchone() is not None


def lease_held(ref: LeaseRef) -> bool:
    """Is the lease still its holder's? True until its time has run out."""
    (held,) = ask(lease(ref))
    return held


def lease(ref: LeaseRef) -> Question[bool]:
    """`lease_held` for whoever asks more in the same round trip."""
    return Question(_LEASE_HELD, [current_tenant_id(), ref.message_pk, ref.fence], bool)


def waiting_scopes(queue: str) -> list[str]:
    """The queue's scopes whose oldest message may be delivered now, a silent holder's included; at most 200."""
    with connection.cursor() as cursor:
        cursor.execute(_WAITING_SCOPES, [current_tenant_id(), queue, _SCOPES_A_SWEEP, rules.MAX_ATTEMPTS])
        return [scope_id for (scope_id,) in cursor.fetchall()]


def waiting_lines(queues: Sequence[Queue]) -> list[tuple[Queue, UUID]]:
    """(queue, tenant) wherever something may be delivered now, of all tenants; outside of any scope."""
    with connection.cursor() as cursor:
        cursor.execute(_WAITING_LINES, [[queue.value for queue in queues], rules.MAX_ATTEMPTS])
        return [(Queue(queue), tenant_id) for queue, tenant_id in cursor.fetchall()]


@dataclass(frozen=True)
class Depth:
    """One queue of the tenant: how many wait, are held, failed for good, and since when the oldest unfinished one is
    there."""

    queue: Queue
    waiting: int = 0
    held: int = 0
    dead: int = 0
    oldest: datetime | None = None


def depths() -> list[Depth]:
    """Every queue of the tenant, empty ones too."""
    by_queue = QueueMessage.objects.order_by().values("queue")
    live = by_queue.filter(state__in=LIVE).annotate(
        waiting=Count("pk", filter=Q(state=State.QUEUED)),
        held=Count("pk", filter=Q(state=State.LEASED)),
        oldest=Min("created_at"),
    )
    dead = by_queue.filter(state=State.DEAD).annotate(dead=Count("pk"))
    found: dict[str, dict[str, Any]] = {queue.value: {"queue": queue} for queue in Queue}
    for row in (*live, *dead):
        found[row["queue"]] |= {name: value for name, value in row.items() if name != "queue"}
    return [Depth(**row) for row in found.values()]


def held_messages(most: int) -> list[QueueMessage]:
    """Leased messages, the one whose lease ends first in front."""
    return list(QueueMessage.objects.filter(leased_until__isnull=False).order_by("leased_until")[:most])


def dead_letters(most: int) -> list[QueueMessage]:
    """Messages that failed for good, the newest first."""
    return list(QueueMessage.objects.filter(state=State.DEAD).order_by("-finished_at")[:most])
