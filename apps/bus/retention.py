"""Delete what has outlived its time, of one tenant or of the whole installation, every few hours.

Rooms register their steps when Django is set up. A step deletes what a short transaction can and says whether there may
be more; each call is a transaction of its own. What a step raises is raised again once the others have had their turn,
so that the bus tries again and tells the tenant's owners. Handler of `Kind.RETENTION`, on the queue `trusted`: no other
worker may read conversations and memories.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from datetime import datetime, timedelta

from apps.bus import services
from apps.bus.deliveries import Delivery
from apps.bus.enums import Kind
from kernel.clock import now
from kernel.errors import error_location
from kernel.tenancy import INSTALLATION, in_thread, run_in_batches

SCOPE = "retention"
EVERY = timedelta(hours=6)
Step = Callable[[], bool]

_of_tenants: list[Step] = []
_of_installation: list[Step] = []
_log = logging.getLogger(__name__)


def register(step: Step, *, installation: bool = False) -> None:
    """Have `step` called in each tenant's scope; with `installation`, in the scope of what belongs to no tenant."""
    steps = _of_installation if installation else _of_tenants
    if step not in steps:
        steps.append(step)


def begin() -> None:
    """Schedule the clean-up of the scope's tenant, at a random time so that tenants are spread over the hours."""
    services.schedule(Kind.RETENTION, scope_id=SCOPE, due_at=now() + EVERY * random.random())  # noqa: S311


async def clear(delivery: Delivery) -> None:
    """Run every step until it has nothing more to delete."""
    failure: Exception | None = None
    for step in _of_installation if delivery.tenant_id == INSTALLATION else _of_tenants:
        try:
            await in_thread(run_in_batches, delivery.tenant_id, step)
        except Exception as error:  # noqa: BLE001 (one step's trouble stops no other)
            _log.error("cleanup_failed step=%s error=%s", step.__module__, error_location(error))
            failure = error
    if failure is not None:
        raise failure
    await delivery.repeat(_next_time)


def _next_time() -> datetime:
    return now() + EVERY
