"""Which rows does this room lock? One work item, by its key, before anything else of it is read or written."""

from __future__ import annotations

from uuid import UUID

from apps.work.models import WorkItem
from kernel.errors import NotFound


def lock_item(item_id: UUID) -> WorkItem:
    """The item, locked until the scope ends. Raises `NotFound` for an unknown or foreign id."""
    item: WorkItem | None = WorkItem.objects.select_for_update(no_key=True).filter(pk=item_id).first()
    if item is None:
        raise NotFound("work item")
    return item
