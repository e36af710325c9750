"""Reads of the bus: due, waiting, leased and processed messages. Inside a scope unless noted otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Count, Min, Q, QuerySet
from django.db.models.functions import Now

from apps.bus import rules
from apps.bus.enums import LIVE, QUEUE_OF, Kind, Queue, State
from apps.bus.models import QueueMessage
from apps.bus.schemas import LeaseRef
from kernel.tenancy import Read, built_once, current_tenant_id

DUE_AT_A_TIME = 200
_BACKLOG = """
    SELECT count(*) FILTER (WHERE scope_id = %s), count(*) FROM (
        SELECT scope_id FROM bus_queuemessage WHERE tenant_id = %s AND queue = %s AND state = ANY(%s::text[]) LIMIT %s
    ) AS live
"""
_DUE = "SELECT turn, tenant_id, queue, scope_id, exhausted FROM bus_due(%s::text[], %s, %s)"


def pending_count(queue: str, scope_id: UUID | str) -> int:
    """Number of unfinished messages of the scope, the leased one included."""
    count: int = QueueMessage.objects.filter(queue=queue, scope_id=str(scope_id), state__in=LIVE).count()
    return count


def backlog(queue: str, scope_id: UUID | str, *, most: int) -> Read[tuple[int, int]]:
    """Unfinished messages of the scope and of the tenant's whole queue, both counted among the queue's first `most`."""
    values = [str(scope_id), current_tenant_id(), queue, list(LIVE), most]
    return Read(_BACKLOG, values, lambda rows: (rows[0][0], rows[0][1]))


def trace_of(kind: Kind, scope_id: UUID | str) -> str:
    """The trace that the recurring job of this kind and scope was scheduled in; "" without such a job."""
    row = QueueMessage.objects.filter(queue=QUEUE_OF[kind], message_id=rules.scope_of(kind, scope_id))
    return row.values_list("trace_id", flat=True).first() or ""


def is_live(message_pk: UUID | None) -> bool:
    """True while the message is queued or leased."""
    return message_pk is not None and QueueMessage.objects.filter(pk=message_pk, state__in=LIVE).exists()


def is_waiting(kind: Kind, scope_id: UUID | str) -> bool:
    """True while a job of this kind is queued in the scope; a leased one does not count."""
    scope = rules.scope_of(kind, scope_id)
    waiting = QueueMessage.objects.filter(queue=QUEUE_OF[kind], kind=kind, scope_id=scope, state=State.QUEUED)
    return bool(waiting.exists())


def lease_held(ref: LeaseRef) -> Read[bool]:
    """True until the lease expires or is lost."""
    return _lease.columns(ref.message_pk, ref.fence).parsed(bool)


@built_once
def _lease(message_pk: UUID, fence: int) -> QuerySet[QueueMessage, Any]:
    held = QueueMessage.objects.filter(pk=message_pk, fence=fence, leased_until__gt=Now())
    return held.values_list("pk")


@dataclass(frozen=True)
class DueScope:
    """A scope whose oldest message may be delivered now.

    `turn` counts a tenant's scopes from 1, so that serving by turn serves every tenant before any tenant twice.
    `exhausted`: the last lease expired and no attempt is left; `services.expire_leases` makes it a dead letter.
    """

    turn: int
    tenant_id: UUID
    queue: Queue
    scope_id: str
    exhausted: bool


def due_scopes(queues: Sequence[Queue], *, most: int = DUE_AT_A_TIME) -> list[DueScope]:
    """Scopes of all tenants with a message that may be delivered now, by turn. Crosses the wall between
    tenants for one statement."""
    with connection.cursor() as cursor:
        cursor.execute(_DUE, [[queue.value for queue in queues], most, rules.MAX_ATTEMPTS])
        rows = cursor.fetchall()
    return [DueScope(turn, tenant, Queue(queue), scope, gone) for turn, tenant, queue, scope, gone in rows]


def tenants_with_leases(consumer: str) -> list[UUID]:
    """Tenants of which this consumer has leased a message. Outside any scope."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT bus_held_by(%s)", [consumer])
        return [tenant_id for (tenant_id,) in cursor.fetchall()]


@dataclass(frozen=True)
class Depth:
    """Counts of one queue of the tenant: messages due (`waiting`), due later, leased (`held`) and dead; and since when
    the oldest is due."""

    queue: Queue
    waiting: int = 0
    scheduled: int = 0
    held: int = 0
    dead: int = 0
    oldest: datetime | None = None


def depths() -> list[Depth]:
    """Every queue of the tenant, empty ones too."""
    by_queue = QueueMessage.objects.order_by().values("queue")
    is_due = Q(state=State.QUEUED, available_at__lte=Now())
    live = by_queue.filter(state__in=LIVE).annotate(
        waiting=Count("pk", filter=is_due),
        scheduled=Count("pk", filter=Q(state=State.QUEUED, available_at__gt=Now())),
        held=Count("pk", filter=Q(state=State.LEASED)),
        oldest=Min("available_at", filter=is_due),
    )
    dead = by_queue.filter(state=State.DEAD).annotate(dead=Count("pk"))
    by_name: dict[str, dict[str, Any]] = {queue.value: {"queue": queue} for queue in Queue}
    for row in (*live, *dead):
        by_name[row["queue"]] |= {name: value for name, value in row.items() if name != "queue"}
    return [Depth(**row) for row in by_name.values()]


def held_messages(most: int) -> list[QueueMessage]:
    """Leased messages, by the end of their lease."""
    return list(QueueMessage.objects.filter(leased_until__isnull=False).order_by("leased_until")[:most])


def dead_letters(most: int) -> list[QueueMessage]:
    """Dead letters, the newest first."""
    return list(QueueMessage.objects.filter(state=State.DEAD).order_by("-finished_at")[:most])
