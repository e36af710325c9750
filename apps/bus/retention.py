"""Delete data whose retention period is over, for each tenant and for the installation, every few hours.

Periodic upkeep of the database is a step of the installation too, such as making partitions
(silas_platform.partitions).

Rooms register their steps when Django is set up. A step deletes as much as a short transaction can and returns whether
there may be more; each call is a transaction of its own. An error in one step does not stop the others and is raised at
the end, so that the bus retries and notifies the tenant's owners. Handler of `Kind.RETENTION`, on the queue `trusted`:
no other worker may read conversations and memories.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from datetime import timedelta

from django.db.models.functions import Now

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus import services
from apps.bus.deliveries import Delivery
from apps.bus.enums import CLOSED, Kind, Queue
from apps.bus.models import Processed, QueueMessage
from apps.tenants.queries import retention as tenant_retention
from kernel.clock import now
from kernel.errors import error_location
from kernel.tenancy import INSTALLATION, in_scope

BATCH = 1000
SCOPE = "retention"
EVERY = timedelta(hours=6)
Step = Callable[[], bool]

_tenant_steps: list[Step] = []
_installation_steps: list[Step] = []
_log = logging.getLogger(__name__)


def register(step: Step, *, installation: bool = False) -> None:
    """Call `step` in each tenant's scope or, with `installation`, in the scope of what belongs to no tenant."""
    steps = _installation_steps if installation else _tenant_steps
    if step not in steps:
        steps.append(step)


def schedule_first() -> None:
    """Schedule the first run for the scope's tenant, at a random time so that tenants are spread over the hours."""
    services.schedule(Kind.RETENTION, scope_id=SCOPE, due_at=now() + EVERY * random.random())  # noqa: S311 (spreads load, keeps no secret)


async def run(delivery: Delivery) -> None:
    """Run every step until it has nothing more to delete, then reschedule."""
    failure: Exception | None = None
    for step in _installation_steps if delivery.tenant_id == INSTALLATION else _tenant_steps:
        try:
            while await in_scope(delivery.tenant_id, step):
                pass
        except Exception as error:  # noqa: BLE001 (one failing step must not stop the others)
            _log.error("cleanup_failed step=%s error=%s", step.__module__, error_location(error))
            failure = error
    if failure is not None:
        raise failure
    await delivery.reschedule(lambda: now() + EVERY)


def delete_closed_messages() -> bool:
    """A step: delete the oldest closed messages, at most `BATCH`, and the marks that nothing can use any more.

    A mark stays as long as a message with its id does: a waiting, leased or dead message can still be delivered, and
    must find that it already had its effect.
    """
    keep = timedelta(days=tenant_retention().messages)
    old = QueueMessage.objects.filter(state__in=CLOSED, finished_at__lt=Now() - keep)
    ids = dict(old.order_by("finished_at").values_list("pk", "message_id")[:BATCH])
    if ids:
        QueueMessage.objects.filter(pk__in=ids).delete()
        # Filtered by queue as well, because the index that has the message ids begins with it.
        remaining = QueueMessage.objects.filter(queue__in=Queue.values, message_id__in=set(ids.values()))
        gone = set(ids.values()).difference(remaining.values_list("message_id", flat=True))
        marks, _ = Processed.objects.filter(message_id__in=gone).delete()
        record(AuditEvent.MESSAGES_CLEARED, data={"messages": len(ids), "marks": marks})
    return len(ids) == BATCH
