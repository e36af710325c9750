"""How does a script of this room come to its guarded call? A run for the script's tool alone, calls in it, and its end.

Nobody's turn asked for such a run: set-ups, discoveries and checks open one for each delivery, under its lease.
"""

from __future__ import annotations

from uuid import UUID, uuid4

from apps.bus.schemas import LeaseRef
from apps.connections.enums import Script
from apps.connections.scripts import TOOL, Work
from apps.guard import services as guard
from apps.guard.enums import Intent, Origin, Phase, RunStatus, TerminalReason
from apps.guard.schemas import Call, CallOutcome, RunRef
from kernel.tenancy import current_tenant_id

PATIENCE_SECONDS = 120.0


def open_run(script: Script, lease: LeaseRef, *, origin: UUID | None = None) -> RunRef:
    """Inside the caller's scope. `origin`: the row it is for, where it is for one."""
    tool = TOOL.format(script=script.value)
    run = guard.open_run(
        Origin.WORK, origin or uuid4(), deployment_id=None, phase=Phase.EXECUTION, allow=[tool], critical=False
    )
    return RunRef(current_tenant_id(), run.pk, lease)


async def call(
    run: RunRef, script: Script, work: Work, *, seconds: float = PATIENCE_SECONDS, **about: UUID
) -> CallOutcome:
    """One guarded call; `work` is done in it, `about` is what the ledger says it was called with."""
    tool = TOOL.format(script=script.value)
    args = {name: str(value) for name, value in about.items()}
    asked = Call(tool=tool, args=args, access=frozenset({tool}), patience_seconds=seconds)
    return await guard.guarded_call(run, Intent.RUN_CONNECTION, asked, context={"work": work})


def close_run(run: RunRef) -> None:
    """Inside the caller's scope."""
    guard.close_run(run.run_id, status=RunStatus.COMPLETED, reason=TerminalReason.COMPLETED)
