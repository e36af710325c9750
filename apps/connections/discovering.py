"""How would this account be signed in to? The skill's `discover.py` says so before anybody is asked for a yes (spec
5.10.1, step 1): a worker runs it once, in one guarded call, and what it found is on the card.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from uuid import UUID

from pydantic import ValidationError

from apps.connections import running, scripts
from apps.connections.enums import Script
from apps.connections.schemas import ConnectionFailure, Discovery
from apps.connections.services import finding_out
from apps.connections.services.course import failure_of
from apps.guard.schemas import CallContext, Done, HandlerResult
from kernel.tenancy import tenant_scope


def discover(tenant_id: UUID, connection_id: UUID) -> bool:
    """False where another process sees to it, or nothing is to be found out any more."""
    with tenant_scope(tenant_id):
        lease = finding_out.claim(connection_id)
        if lease is None:
            return False
        run = running.open_run(Script.DISCOVER)
    looked = _Look(tenant_id, connection_id, lease)
    outcome = asyncio.run(running.call(run, Script.DISCOVER, looked, connection=connection_id))
    with tenant_scope(tenant_id):
        if not isinstance(outcome, Done):
            finding_out.failed(connection_id, lease, looked.failure)
        running.close_run(run)
    return True


@dataclass
class _Look:
    """`failure`: what the script says is in the way."""

    tenant_id: UUID
    connection_id: UUID
    lease: UUID
    failure: ConnectionFailure | None = None

    def __call__(self, _: CallContext) -> HandlerResult:
        job = scripts.job_of(self.tenant_id, self.connection_id)
        answer, _handed = scripts.ask(job, Script.DISCOVER, {"identity_hint": {}})
        if "failure" in answer:
            self.failure = failure_of(answer["failure"])
            raise scripts.failed("discovery_failed", "The service cannot be connected as it is.")
        try:
            found = Discovery.model_validate(answer)
        except ValidationError as error:
            raise scripts.failed("discovery_unreadable", "The script did not say how to sign in.") from error
        return HandlerResult({}, on_settle=lambda: finding_out.found(self.connection_id, self.lease, found))
