"""Row locks of this room, in this order.

The card, if there is one; the project or batch that an item is part of; the item; its course; the goal it serves; the
customer, before what waits for them is counted; the conversation, which the rooms above lock; the tenant's pool of
executors last.
`lock_item` keeps the first part of it: whoever holds a project or a batch holds everything that is part of it, so that
its end and the end of a part never wait for each other (docs/work.md).
"""

from __future__ import annotations

from uuid import UUID

from django.db import connection

from apps.work.enums import WorkItemType
from apps.work.models import Batch, Course, WorkItem
from kernel.errors import NotFound
from kernel.tenancy import current_tenant_id


def lock_item(item_id: UUID) -> WorkItem:
    """The item as it is now, locked until the scope ends, after what it is part of. Raises `NotFound` for an unknown or
    foreign id."""
    _lock_whole(item_id)
    item: WorkItem | None = WorkItem.objects.select_for_update(no_key=True).filter(pk=item_id).first()
    if item is None:
        raise NotFound("work item")
    return item


def _lock_whole(item_id: UUID) -> None:
    """The project or batch of the item: neither ever changes, so it may be read before anything is locked."""
    found = WorkItem.objects.filter(pk=item_id).values_list("parent__type", "parent_id", "batch_id").first()
    parent_type, parent_id, batch_id = found or (None, None, None)
    if parent_id is not None and parent_type == WorkItemType.PROJECT:
        lock_item(parent_id)
    elif batch_id is not None:
        lock_batch(batch_id)


def lock_batch(batch_id: UUID) -> Batch:
    """The batch as it is now, locked until the scope ends, and with it what it lists. Raises `NotFound`."""
    batch: Batch | None = Batch.objects.select_for_update(no_key=True).filter(pk=batch_id).first()
    if batch is None:
        raise NotFound("batch")
    return batch


def lock_course(item: WorkItem) -> Course:
    """Where the item stands between its attempts, locked until the scope ends."""
    found: Course | None = Course.objects.select_for_update(no_key=True).filter(work_item=item).first()
    if found is None:
        Course.objects.get_or_create(work_item=item)
        found = Course.objects.select_for_update(no_key=True).get(work_item=item)
    return found


def lock_pool() -> None:
    """Everybody who wants one of the tenant's places for work passes here one by one, until the scope ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"pool:{current_tenant_id()}"])


def lock_customer(subject: str) -> None:
    """Queue up behind every other proposal for this customer of the tenant, until the scope ends. Nobody is nobody."""
    if subject:
        whose = f"{current_tenant_id()}:{subject}"
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [whose])
