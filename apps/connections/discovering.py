"""Find out how an account would be signed in to: the skill's `discover.py` says so before anybody is asked for an
approval (spec 5.10.1, step 1). `discover` is the handler of `connection_discovery`: one guarded call, and what it found
is on the card.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from pydantic import ValidationError

from apps.bus.deliveries import Delivery
from apps.bus.models import QueueMessage
from apps.bus.schemas import LeaseRef
from apps.connections import running, scripts
from apps.connections.enums import Script
from apps.connections.schemas import ConnectionFailure, Discovery
from apps.connections.services import discovery
from apps.connections.services.setup_state import parse_failure
from apps.guard.schemas import CallContext, CallOutcome, Done, HandlerResult, RunRef
from kernel.tenancy import in_scope


async def discover(delivery: Delivery) -> None:
    connection_id, lease = UUID(delivery.message.subject), delivery.lease.ref
    run = await in_scope(delivery.tenant_id, _begin, connection_id, lease)
    if run is None:
        return
    looked = _Look(delivery.tenant_id, connection_id, lease)
    outcome = await running.call(run, Script.DISCOVER, looked, connection=connection_id)
    await delivery.commit(_conclude, run, looked, outcome)


def _begin(connection_id: UUID, lease: LeaseRef) -> RunRef | None:
    return running.open_run(Script.DISCOVER, lease) if discovery.is_pending(connection_id) else None


def _conclude(run: RunRef, looked: _Look, outcome: CallOutcome) -> None:
    if not isinstance(outcome, Done):
        discovery.record_failure(looked.connection_id, looked.lease.message_pk, looked.failure)
    running.close_run(run)


def gave_up(message: QueueMessage) -> bool:
    """No worker could find it out: who asked is told."""
    discovery.record_failure(UUID(message.subject), message.pk, None)
    return True


@dataclass
class _Look:
    """`failure`: what the script says is in the way."""

    tenant_id: UUID
    connection_id: UUID
    lease: LeaseRef
    failure: ConnectionFailure | None = None

    def __call__(self, _: CallContext) -> HandlerResult:
        job = scripts.load_job(self.tenant_id, self.connection_id)
        answer, _handed = scripts.run_script(job, Script.DISCOVER, {"identity_hint": {}})
        if "failure" in answer:
            self.failure = parse_failure(answer["failure"])
            raise scripts.call_failed("discovery_failed", "The service cannot be connected as it is.")
        try:
            found = Discovery.model_validate(answer)
        except ValidationError as error:
            raise scripts.call_failed("discovery_unreadable", "The script did not say how to sign in.") from error
        return HandlerResult({}, on_settle=lambda: discovery.record_result(self.connection_id, self.lease, found))
