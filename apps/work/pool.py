"""Limit how many items a tenant runs at once, and in which order; counted in the database, across processes.

8 a scope, 16 a tenant (settings); approved execution before research before status; items that may write the same
things run one by one, in the order in which they were queued (spec 19.7; contract silas 15). Called inside scopes, by
`services` only.
"""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.db import connection

from apps.bus import services as bus
from apps.bus.enums import Queue
from apps.bus.models import QueueMessage
from apps.bus.schemas import Lease
from apps.work.conflicts import Claims
from apps.work.enums import SlotKind
from apps.work.locks import lock_pool
from apps.work.models import PoolSlot
from kernel.tenancy import current_tenant_id

IN_USE = "pool"
_COUNT_OTHERS = """
    SELECT count(*) FILTER (WHERE live),
           count(*) FILTER (WHERE live AND scope_id = %(scope)s),
           count(*) FILTER (WHERE NOT live AND kind = 'execution'),
           coalesce(bool_or((live OR position < %(position)s)
                            AND (claims && %(reach)s::varchar[] OR covers && %(claims)s::varchar[])), false)
    FROM (SELECT slot.*, slot.fence >= 0 AND EXISTS (
                 SELECT FROM bus_queuemessage message WHERE message.id = slot.holder AND message.fence = slot.fence
                 AND message.leased_until > statement_timestamp()) AS live
          FROM work_poolslot slot WHERE slot.tenant_id = %(tenant)s AND slot.holder <> %(holder)s) AS others
"""


def join_queue(message: QueueMessage, *, scope_id: UUID | str, kind: SlotKind, claims: Claims | None = None) -> None:
    """Record what a queued message is and what it may write, in the transaction that queues it."""
    claims = claims or Claims()
    PoolSlot.objects.get_or_create(
        holder=message.pk,
        defaults={
            "scope_id": str(scope_id),
            "kind": kind,
            "position": message.position,
            "claims": sorted(claims.exact),
            "covers": sorted(claims.above),
        },
    )


def acquire(lease: Lease) -> bool:
    """Take a slot for the leased message; False when there is none now. A slot is held until the lease ends."""
    slot: PoolSlot | None = PoolSlot.objects.filter(holder=lease.message.pk).first()
    if slot is None:
        slot = PoolSlot(holder=lease.message.pk, scope_id=lease.message.scope_id, position=lease.message.position)
        slot.kind = SlotKind.EXECUTION
    if slot.fence == lease.fence:
        return True
    # Two that count at the same time would both find the last slot free.
    lock_pool()
    if not _has_room(slot):
        return False
    slot.fence = lease.fence
    slot.save()
    return True


def release(message_pk: UUID) -> None:
    """Free the slot and its claims, and wake the messages that waited for either."""
    PoolSlot.objects.filter(holder=message_pk).delete()
    bus.release_deferred(Queue.EXECUTOR, reason=IN_USE)


def _has_room(slot: PoolSlot) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            _COUNT_OTHERS,
            {
                "tenant": current_tenant_id(),
                "holder": slot.holder,
                "scope": slot.scope_id,
                "position": slot.position,
                "claims": list(slot.claims),
                "reach": [*slot.claims, *slot.covers],
            },
        )
        taken, in_scope, waiting, in_conflict = cursor.fetchone()
    # Execution goes first: everything else also leaves room for the executions that still wait.
    before = 0 if slot.kind == SlotKind.EXECUTION else waiting
    room = taken + before < settings.POOL_SIZE and in_scope < settings.POOL_SIZE_PER_SCOPE
    return room and not in_conflict
