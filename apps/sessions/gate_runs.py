"""Run the frozen gates of one trigger from async code, for a turn and for assistance to staff. Writes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from uuid import UUID

from apps.gates.allowance import Allowance
from apps.gates.enums import GateLane, GateTrigger
from apps.gates.providers.script import needs_claim
from apps.gates.schemas import GateReport
from apps.gates.services import check_gates, scripts_due
from apps.sessions import policy
from apps.sessions.state import Policy
from kernel.tenancy import in_scope


async def run_policy_gates(
    tenant_id: UUID,
    frozen: Policy,
    trigger: GateTrigger,
    context: Mapping[str, object],
    *,
    allowance: Allowance,
    without: Collection[str] = (),
) -> GateReport:
    """The gates of one trigger, less those named in `without`. Scripts and models are waited for in a thread, a
    script's files read in a scope before. Outside of any scope; the caller records the report's audit notes."""
    frozen = replace(frozen, gates=tuple(gate for gate in frozen.gates if gate.name not in without))
    scripts = scripts_due(frozen.gates, trigger, context)
    run = partial(
        check_gates, frozen.gates, trigger, context, level_gates=policy.level_gates(frozen), allowance=allowance
    )
    if scripts:
        files = await in_scope(tenant_id, policy.gate_files, frozen, scripts, context)
        return await asyncio.to_thread(run, files=files)
    if policy.asks_models(frozen, trigger):
        return await asyncio.to_thread(run)
    # Without scripts and models a check takes less time than reaching a thread.
    return run()


def idle_gates(frozen: Policy) -> frozenset[str]:
    """The gates that have no part in a text that proves no identity: those that check a claim for a level,
    and those that only advise."""
    of_levels = policy.level_gates(frozen)
    return frozenset(
        gate.name
        for gate in frozen.gates
        if gate.lane == GateLane.QUALITY or (gate.name in of_levels and needs_claim(gate))
    )
