"""What does this room lock? A customer, before what waits for them is counted; one work item, before anything of it is
read or written."""

from __future__ import annotations

from uuid import UUID

from django.db import connection

from apps.work.models import WorkItem
from kernel.errors import NotFound
from kernel.tenancy import current_tenant_id


def lock_item(item_id: UUID) -> WorkItem:
    """The item, locked until the scope ends. Raises `NotFound` for an unknown or foreign id."""
    item: WorkItem | None = WorkItem.objects.select_for_update(no_key=True).filter(pk=item_id).first()
    if item is None:
        raise NotFound("work item")
    return item


def lock_customer(subject: str) -> None:
    """Queue up behind every other proposal for this customer of the tenant, until the scope ends. Nobody is nobody."""
    if subject:
        whose = f"{current_tenant_id()}:{subject}"
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [whose])
