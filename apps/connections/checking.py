"""Check a connection in one guarded call. `check` is the handler of `connection_check`, a standing message of each
connection, due at its `next_check_at`."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from apps.bus.deliveries import Delivery
from apps.bus.schemas import LeaseRef
from apps.connections import running
from apps.connections.enums import Script
from apps.connections.services import health
from apps.guard.schemas import CallOutcome, Done, RunRef
from kernel.tenancy import in_scope


async def check(delivery: Delivery) -> None:
    connection_id, lease = UUID(delivery.message.subject), delivery.lease.ref
    run, outcome = await in_scope(delivery.tenant_id, _begin, connection_id, lease), None
    if run is not None:
        work = health.HealthCheck(delivery.tenant_id, connection_id, lease)
        outcome = await running.call(run, Script.HEALTH_CHECK, work, connection=connection_id)
    await delivery.reschedule(_conclude, connection_id, run, outcome)


def _begin(connection_id: UUID, lease: LeaseRef) -> RunRef | None:
    return running.open_run(Script.HEALTH_CHECK, lease) if health.is_due(connection_id) else None


def _conclude(connection_id: UUID, run: RunRef | None, outcome: CallOutcome | None) -> datetime | None:
    if run is not None:
        if not isinstance(outcome, Done):
            health.postpone(connection_id)
        running.close_run(run)
    return health.next_check_at(connection_id)
