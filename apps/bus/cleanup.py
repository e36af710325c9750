"""Delete closed messages after the tenant's retention period, and the processed marks that nothing can use any more.

A mark stays as long as a message with its id does: a waiting, leased or dead message can still be delivered, and must
find that it already had its effect. A step of `retention`.
"""

from __future__ import annotations

from datetime import timedelta

from django.db.models.functions import Now

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus.enums import CLOSED, Queue
from apps.bus.models import Processed, QueueMessage
from apps.tenants.queries import retention

BATCH = 1000


def delete_closed_messages() -> bool:
    """Delete the oldest closed messages, at most `BATCH`; inside a scope. True when there may be more."""
    old = QueueMessage.objects.filter(state__in=CLOSED, finished_at__lt=Now() - timedelta(days=retention().messages))
    ids = dict(old.order_by("finished_at").values_list("pk", "message_id")[:BATCH])
    if ids:
        QueueMessage.objects.filter(pk__in=ids).delete()
        marks = _delete_marks(set(ids.values()))
        record(AuditEvent.MESSAGES_CLEARED, data={"messages": len(ids), "marks": marks})
    return len(ids) == BATCH


def _delete_marks(message_ids: set[str]) -> int:
    # Filtered by queue as well, because the index that has the message ids begins with it.
    remaining = QueueMessage.objects.filter(queue__in=Queue.values, message_id__in=message_ids)
    gone = message_ids.difference(remaining.values_list("message_id", flat=True))
    marks, _ = Processed.objects.filter(message_id__in=gone).delete()
    return int(marks)
