"""Who holds a set-up conversation? A thread of a worker, so that a person who thinks for minutes keeps no worker busy.

`hold` claims it, opens a guarded run and makes the one guarded call in which the conversation is held; whatever comes
of it is in the rows. A worker that dies leaves a lease that runs out, and the sweep fails the conversation.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from uuid import UUID

from django.db import connection as database

from apps.connections import running
from apps.connections.conversing import Held, Limits
from apps.connections.enums import Script
from apps.connections.services import course
from apps.guard.schemas import CallOutcome, Done, Failed
from kernel.errors import place_of
from kernel.tenancy import tenant_scope

_log = logging.getLogger(__name__)
AT_ONCE = 8
_slots = threading.BoundedSemaphore(AT_ONCE)


def begin(tenant_id: UUID, setup_id: UUID) -> bool:
    """Hold it in a thread of this process; False where there are enough of them: the sweep asks again."""
    if not _slots.acquire(blocking=False):
        return False
    threading.Thread(target=_hold_and_leave, args=(tenant_id, setup_id), name="set-up", daemon=True).start()
    return True


def _hold_and_leave(tenant_id: UUID, setup_id: UUID) -> None:
    try:
        hold(tenant_id, setup_id)
    except Exception as error:  # noqa: BLE001 (the thread's own end; what was held is swept)
        _log.error("setup_failed setup=%s error=%s", setup_id, place_of(error))
    finally:
        database.close()
        _slots.release()


def hold(tenant_id: UUID, setup_id: UUID, *, limits: Limits | None = None) -> bool:
    """The whole conversation, in this thread. False where somebody else holds it, or it is over."""
    with tenant_scope(tenant_id):
        lease = course.claim(setup_id)
        if lease is None:
            return False
        row = course.setup_of(setup_id)
        run = running.open_run(Script.SETUP, origin=row.connection_id)
    held = Held(tenant_id, setup_id, lease, limits or Limits())
    patience = held.limits.whole + running.PATIENCE_SECONDS
    said = running.call(run, Script.SETUP, held, seconds=patience, connection=row.connection_id, setup=setup_id)
    outcome = asyncio.run(said)
    with tenant_scope(tenant_id):
        _settle(setup_id, lease, held, outcome)
        running.close_run(run)
    return True


def _settle(setup_id: UUID, lease: UUID, held: Held, outcome: CallOutcome) -> None:
    if isinstance(outcome, Done):
        return
    code = outcome.code if isinstance(outcome, Failed) else "refused"
    course.fail(setup_id, lease, code=str(code), failure=held.failure)
