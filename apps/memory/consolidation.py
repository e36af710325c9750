"""Merge memories that say the same thing, promote what was said repeatedly, and ask about what disagrees (spec 6.4).

Handler of `Kind.MEMORY_CONSOLIDATION`, on the queue `trusted`: no other worker may read memories (ADR 36). A job is
enqueued when a model's memory is stored: one for each company and interval, so that a company which stores nothing
costs nothing. What is merged, and how, is in `sql/consolidation.py`; what is promoted, in `promotion`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db import connection

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus import services as bus
from apps.bus.deliveries import Delivery
from apps.bus.enums import Kind
from apps.memory import disagreement, promotion
from apps.memory.graph import read_all
from apps.memory.models import MemoryConsolidation, MemoryQuestion
from apps.memory.sql.consolidation import FIND, MERGE
from apps.tenants.queries import retention
from kernel.clock import now
from kernel.tenancy import current_tenant_id, in_scope

# Spec 6.4: every 30 minutes.
INTERVAL = timedelta(minutes=30)
# Groups that are found at once; of these, groups merged, and groups promoted, in one transaction. `BATCH` is also how
# many log rows are deleted in one.
FOUND, BATCH, PROMOTED_BATCH = 20_000, 100, 50
_SINCE = datetime(2000, 1, 1, tzinfo=UTC)


def enqueue_consolidation() -> None:
    """Enqueue this interval's job of the scope's company, due at the interval's end; once, however often called."""
    # Every process reckons the same end, so that one interval has one job.
    ends = _SINCE + ((now() - _SINCE) // INTERVAL + 1) * INTERVAL
    bus.enqueue(
        Kind.MEMORY_CONSOLIDATION,
        scope_id=current_tenant_id(),
        message_id=f"{Kind.MEMORY_CONSOLIDATION.value}:{ends.isoformat()}",
        due_at=ends,
    )


async def handle_consolidation(delivery: Delivery) -> None:
    """Read what is unread, then merge and promote until there is nothing to do, in short transactions. Run again after
    a crash, it continues."""
    await read_all(delivery.tenant_id)
    merged = 1
    while merged and (groups := await in_scope(delivery.tenant_id, find_duplicates)):
        merged = 0
        for start in range(0, len(groups), BATCH):
            merged += await in_scope(delivery.tenant_id, merge, groups[start : start + BATCH])
    promoted = 1
    while promoted and (groups := await in_scope(delivery.tenant_id, promotion.find_promotable)):
        promoted = 0
        for start in range(0, len(groups), PROMOTED_BATCH):
            batch = groups[start : start + PROMOTED_BATCH]
            promoted += await in_scope(delivery.tenant_id, promotion.promote, batch)
    await in_scope(delivery.tenant_id, disagreement.ask_about_disagreements)


def find_duplicates() -> list[list[UUID]]:
    """The ids of the memories of the scope's company that say the same, by group; at most `FOUND` groups."""
    with connection.cursor() as cursor:
        cursor.execute(FIND, {"tenant": current_tenant_id(), "groups": FOUND})
        return [ids for (ids,) in cursor.fetchall()]


def merge(groups: Iterable[list[UUID]]) -> int:
    """Merge these groups as far as they are still duplicates; returns how many memories were merged away."""
    with connection.cursor() as cursor:
        cursor.execute(MERGE, {"tenant": current_tenant_id(), "ids": [each for group in groups for each in group]})
        count = int(cursor.rowcount)
    if count:
        record(AuditEvent.MEMORIES_MERGED, data={"count": count})
    return count


def delete_log_batch() -> bool:
    """A step of `bus.retention`: delete log rows that are older than memories may be; True if there may be more."""
    return _delete_old(MemoryConsolidation)


def delete_questions_batch() -> bool:
    """The same for questions about memories."""
    return _delete_old(MemoryQuestion)


def _delete_old(model: type[MemoryConsolidation] | type[MemoryQuestion]) -> bool:
    days = retention().memories
    if days is None:
        return False
    old = model.objects.filter(created_at__lt=now() - timedelta(days=days))
    ids = list(old.order_by().values_list("pk", flat=True)[:BATCH])
    model.objects.filter(pk__in=ids).delete()
    return len(ids) == BATCH
