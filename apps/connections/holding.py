"""Hold a set-up conversation. `hold` is the handler of `connection_setup`: one guarded call in which the conversation
is held, with what comes of it in the rows.

A person may think for minutes, so the bus runs it in a thread beside the worker's other work (`apps.bus.threads`). The
conversation of a worker that died fails when its message is delivered again.
"""

from __future__ import annotations

from uuid import UUID

from apps.bus.deliveries import Delivery
from apps.bus.models import QueueMessage
from apps.bus.schemas import LeaseRef
from apps.connections import running
from apps.connections.enums import Script
from apps.connections.models import SetupRun
from apps.connections.services import setup_state
from apps.connections.setup_session import Limits, SetupSession
from apps.guard.schemas import CallOutcome, Done, Failed, RunRef
from kernel.tenancy import in_scope


async def hold(delivery: Delivery, *, limits: Limits | None = None) -> None:
    begun = await in_scope(delivery.tenant_id, _begin, UUID(delivery.message.subject), delivery.lease.ref)
    if begun is None:
        return
    setup, run = begun
    held = SetupSession(delivery.tenant_id, setup.pk, delivery.lease.ref, limits or Limits())
    patience = held.limits.whole + running.PATIENCE_SECONDS
    outcome = await running.call(
        run, Script.SETUP, held, seconds=patience, connection=setup.connection_id, setup=setup.pk
    )
    await delivery.commit(_conclude, run, held, outcome)


def _begin(setup_id: UUID, lease: LeaseRef) -> tuple[SetupRun, RunRef] | None:
    setup = setup_state.begin_session(setup_id)
    return (setup, running.open_run(Script.SETUP, lease, origin=setup.connection_id)) if setup else None


def _conclude(run: RunRef, held: SetupSession, outcome: CallOutcome) -> None:
    if not isinstance(outcome, Done):
        code = outcome.code if isinstance(outcome, Failed) else "refused"
        setup_state.fail(held.setup_id, code=str(code), failure=held.failure)
    running.close_run(run)


def gave_up(message: QueueMessage) -> bool:
    """No worker could hold it: it fails, which a card tells."""
    setup_state.fail(UUID(message.subject), code="worker_lost")
    return True
