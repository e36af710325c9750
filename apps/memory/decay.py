"""Archive memories that are not used (spec 6.4).

An archived memory is not recalled; it is listed until it expires, and members can restore it (`services.restore`). Only
what a model wrote, or what was promoted without a person, is archived: nothing that is confirmed, pinned, or that a
person kept. The clean-up of the trusted worker archives; the turn that recalls a memory says that it was used.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Q
from django.db.models.functions import Coalesce

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.memory.enums import OF_MODELS, ArchiveReason, Tier, Trust
from apps.memory.models import MemoryItem
from apps.memory.rules import MOST_USES, longest_idle
from kernel.clock import now
from kernel.tenancy import before_commit, current_tenant_id

# Uses within this time count once, so that a memory which many conversations recall is seldom written.
COUNTED_ONCE = timedelta(hours=1)
_BATCH = 500
# Rows that are locked are left out: a turn does not wait for another one that recalled the same.
_USE = """
UPDATE memory_memoryitem SET used_at = %(now)s, uses = uses + 1
    FROM (SELECT id FROM memory_memoryitem
        WHERE tenant_id = %(tenant)s AND id = ANY (%(ids)s) AND tier = 'active'
            AND (used_at IS NULL OR used_at < %(before)s)
        ORDER BY id FOR NO KEY UPDATE SKIP LOCKED) AS used
    WHERE memory_memoryitem.id = used.id
"""


def record_use(ids: Iterable[str]) -> None:
    """Record that a turn recalled these memories, with one statement before this scope commits."""
    for each in ids:
        before_commit(_record_use, UUID(each))


def archive_unused_batch() -> bool:
    """A step of `bus.retention`: archive what weighs too little; True if there may be more."""
    moment, idle = now(), Q(pk__in=[])
    for uses in range(MOST_USES + 1):
        counted = Q(uses=uses) if uses < MOST_USES else Q(uses__gte=uses)
        idle |= counted & Q(last_use__lt=moment - longest_idle(uses))
    rows = MemoryItem.objects.annotate(last_use=Coalesce("used_at", "created_at")).filter(
        idle,
        tier=Tier.ACTIVE,
        trust=Trust.WORKING,
        source_kind__in=OF_MODELS,
        pinned=False,
        archived_at__isnull=True,
    )
    ids = list(rows.order_by().values_list("pk", flat=True)[:_BATCH])
    # A memory that was used or pinned meanwhile stays.
    count = rows.filter(pk__in=ids).update(archived_at=moment, archive_reason=ArchiveReason.UNUSED)
    if count:
        record(AuditEvent.MEMORIES_ARCHIVED, data={"reason": ArchiveReason.UNUSED.value, "count": count})
    return len(ids) == _BATCH and count > 0


def _record_use(ids: list[UUID]) -> None:
    moment = now()
    values: dict[str, Any] = {"tenant": current_tenant_id(), "ids": ids, "now": moment, "before": moment - COUNTED_ONCE}
    with connection.cursor() as cursor:
        cursor.execute(_USE, values)
