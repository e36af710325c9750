"""Row locks of this room, in this order.

The card, if there is one; the project or batch that an item is part of; the item; its course; the goal it serves; the
customer, before their open items are counted; the conversation, which the rooms above lock; the tenant's pool of
executors last.

`lock_item` enforces the first part: a caller that locks a project or a batch has locked all of its items, so the end of
the whole and the end of a part never deadlock (docs/work.md)."""

from __future__ import annotations

from uuid import UUID

from django.db import connection

from apps.work.enums import WorkItemType
from apps.work.models import Batch, Course, WorkItem
from kernel.errors import NotFound
from kernel.tenancy import current_tenant_id


def lock_item(item_id: UUID) -> WorkItem:
    """Lock the item until the scope ends, after the project or batch that it is part of. Raises `NotFound` for an
    unknown or foreign id."""
    _lock_whole(item_id)
    # FOR NO KEY UPDATE: rows that refer to the item may be inserted meanwhile.
    item: WorkItem | None = WorkItem.objects.select_for_update(no_key=True).filter(pk=item_id).first()
    if item is None:
        raise NotFound()
    return item


def _lock_whole(item_id: UUID) -> None:
    """Lock the item's project or batch. Neither reference ever changes, so it is safe to read it before locking."""
    row = WorkItem.objects.filter(pk=item_id).values_list("parent__type", "parent_id", "batch_id").first()
    parent_type, parent_id, batch_id = row or (None, None, None)
    if parent_id is not None and parent_type == WorkItemType.PROJECT:
        lock_item(parent_id)
    elif batch_id is not None:
        lock_batch(batch_id)


def lock_batch(batch_id: UUID) -> Batch:
    """Lock the batch, and with it its items, until the scope ends. Raises `NotFound`."""
    batch: Batch | None = Batch.objects.select_for_update(no_key=True).filter(pk=batch_id).first()
    if batch is None:
        raise NotFound()
    return batch


def lock_course(item: WorkItem) -> Course:
    """Lock the item's runtime state until the scope ends; create it if it is missing."""
    course: Course | None = Course.objects.select_for_update(no_key=True).filter(work_item=item).first()
    if course is None:
        # A rival may create it first; the lock is then taken on the rival's row.
        Course.objects.get_or_create(work_item=item)
        course = Course.objects.select_for_update(no_key=True).get(work_item=item)
    return course


def lock_pool() -> None:
    """Serialize everything that takes one of the tenant's pool slots, until the scope ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"pool:{current_tenant_id()}"])


def lock_customer(subject: str) -> None:
    """Serialize proposals for this customer of the tenant until the scope ends. Nothing for an unknown customer."""
    if subject:
        whose = f"{current_tenant_id()}:{subject}"
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [whose])
