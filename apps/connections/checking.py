"""Who checks connections? Every worker that a beat wakes, as many of a company at a time as it can claim, each in one
guarded call; a company's calls of one look share a guarded run.
"""

from __future__ import annotations

import asyncio
import logging
from uuid import UUID, uuid4

from apps.connections.services import upkeep
from apps.guard import services as guard
from apps.guard.enums import Intent, Origin, Phase, RunStatus, TerminalReason
from apps.guard.schemas import Call, CallOutcome, Done, RunRef
from apps.tenants.queries import all_tenants
from kernel.tenancy import in_scope, tenant_scope

_log = logging.getLogger(__name__)
TOOL = "connection:health_check"
AT_ONCE = 8


def check_due() -> int:
    """Whatever is due, of every company; returns how many were checked."""
    return sum(check_of(tenant.pk) for tenant in all_tenants())


def check_of(tenant_id: UUID) -> int:
    done = 0
    while True:
        with tenant_scope(tenant_id):
            lease, ids = upkeep.claim_due(AT_ONCE)
            run = _run() if ids else None
        if run is None:
            return done
        asyncio.run(_all(RunRef(tenant_id, run), ids, lease))
        with tenant_scope(tenant_id):
            guard.close_run(run, status=RunStatus.COMPLETED, reason=TerminalReason.COMPLETED)
        done += len(ids)


def check_now(tenant_id: UUID, connection_id: UUID) -> bool:
    """One, whether it is due or not; False while another process sees to it."""
    with tenant_scope(tenant_id):
        lease = upkeep.claim_one(connection_id)
        run = _run() if lease else None
    if lease is None or run is None:
        return False
    asyncio.run(_all(RunRef(tenant_id, run), [connection_id], lease))
    with tenant_scope(tenant_id):
        guard.close_run(run, status=RunStatus.COMPLETED, reason=TerminalReason.COMPLETED)
    return True


def _run() -> UUID:
    run = guard.open_run(Origin.WORK, uuid4(), deployment_id=None, phase=Phase.EXECUTION, allow=[TOOL], critical=False)
    found: UUID = run.pk
    return found


async def _all(run: RunRef, ids: list[UUID], lease: UUID) -> None:
    await asyncio.gather(*(_one(run, connection_id, lease) for connection_id in ids))


async def _one(run: RunRef, connection_id: UUID, lease: UUID) -> CallOutcome:
    call = Call(tool=TOOL, args={"connection": str(connection_id)}, access=frozenset({TOOL}), patience_seconds=120)
    work = upkeep.Check(run.tenant_id, connection_id, lease)
    outcome = await guard.guarded_call(run, Intent.RUN_CONNECTION, call, context={"work": work})
    if not isinstance(outcome, Done):
        await in_scope(run.tenant_id, upkeep.give_back, connection_id, lease)
    return outcome
