"""Who checks connections? Every worker that a beat wakes, as many of a company at a time as it can claim, each in one
guarded call; a company's calls of one look share a guarded run.
"""

from __future__ import annotations

import asyncio
from uuid import UUID

from apps.connections import running
from apps.connections.enums import Script
from apps.connections.services import upkeep
from apps.guard.schemas import CallOutcome, Done, RunRef
from apps.tenants.queries import over_all
from kernel.tenancy import in_scope, tenant_scope

AT_ONCE = 8


def check_due() -> int:
    """Whatever is due, of every company; returns how many were checked."""
    return over_all(check_of)


def check_of(tenant_id: UUID) -> int:
    done = 0
    while True:
        with tenant_scope(tenant_id):
            lease, ids = upkeep.claim_due(AT_ONCE)
            run = running.open_run(Script.HEALTH_CHECK) if lease else None
        if lease is None or run is None:
            return done
        _look_at(run, ids, lease)
        done += len(ids)


def check_now(tenant_id: UUID, connection_id: UUID) -> bool:
    """One, whether it is due or not; False while another process sees to it."""
    with tenant_scope(tenant_id):
        lease = upkeep.claim_one(connection_id)
        run = running.open_run(Script.HEALTH_CHECK) if lease else None
    if lease is None or run is None:
        return False
    _look_at(run, [connection_id], lease)
    return True


def _look_at(run: RunRef, ids: list[UUID], lease: UUID) -> None:
    asyncio.run(_all(run, ids, lease))
    with tenant_scope(run.tenant_id):
        running.close_run(run)


async def _all(run: RunRef, ids: list[UUID], lease: UUID) -> None:
    await asyncio.gather(*(_one(run, connection_id, lease) for connection_id in ids))


async def _one(run: RunRef, connection_id: UUID, lease: UUID) -> CallOutcome:
    work = upkeep.Check(run.tenant_id, connection_id, lease)
    outcome = await running.call(run, Script.HEALTH_CHECK, work, connection=connection_id)
    if not isinstance(outcome, Done):
        await in_scope(run.tenant_id, upkeep.give_back, connection_id, lease)
    return outcome
