"""Delete messages that were closed some time ago, and with the last message of an id its marks.

A mark stays as long as any message of its id does: what waits, is held or has failed for good can still be delivered,
and has to find that it had its effect. A step of `retention`.
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


def clear_batch() -> bool:
    """Delete the oldest closed messages, not more than a short transaction can; inside a scope. True when there may be
    more."""
    old = QueueMessage.objects.filter(state__in=CLOSED, finished_at__lt=Now() - timedelta(days=retention().messages))
    ids = dict(old.order_by("finished_at").values_list("pk", "message_id")[:BATCH])
    if ids:
        QueueMessage.objects.filter(pk__in=ids).delete()
        marks = _clear_marks(set(ids.values()))
        record(AuditEvent.MESSAGES_CLEARED, data={"messages": len(ids), "marks": marks})
    return len(ids) == BATCH


def _clear_marks(message_ids: set[str]) -> int:
    # Asked by queue as well, because the index that knows message ids begins with it.
    others = QueueMessage.objects.filter(queue__in=Queue.values, message_id__in=message_ids)
    gone = message_ids.difference(others.values_list("message_id", flat=True))
    marks, _ = Processed.objects.filter(message_id__in=gone).delete()
    return int(marks)
