"""Handlers of this room's bus messages: cards to open, checks, discoveries, set-ups and the cleanup of the keyring.

Each handler that runs a skill's script does so in one guarded call, in a run that is opened for the delivery and bound
to its lease. A handler is safe to run twice: it first asks the rows whether there is still something to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from pydantic import ValidationError

from apps.bus.deliveries import Delivery
from apps.bus.enums import Kind, Queue
from apps.bus.models import QueueMessage
from apps.bus.registry import on_dead_letter, register, register_job
from apps.bus.schemas import LeaseRef
from apps.connections import keyring_cleanup, scripts
from apps.connections.enums import Script
from apps.connections.models import Connection, SetupRun
from apps.connections.schemas import ConnectionFailure, Discovery
from apps.connections.services import discovery, health, recovery, requests, setup_state
from apps.connections.services.setup_state import parse_failure
from apps.connections.setup_session import Limits, SetupSession
from apps.guard import services as guard
from apps.guard.enums import Intent, Origin, Phase, RunStatus, TerminalReason
from apps.guard.schemas import Call, CallContext, CallOutcome, Done, Failed, HandlerResult, RunRef
from kernel.clock import now
from kernel.stored_texts import stored_text
from kernel.tenancy import current_tenant_id, in_scope

# These handlers wait for a person or for a service, so a worker runs several at once beside its other work.
CONCURRENCY = 8
CALL_SECONDS = 120.0
CLEANUP_INTERVAL = timedelta(hours=1)


async def handle_event(delivery: Delivery) -> None:
    """Open the card that an event calls for. Handler of `connection_owed` on the queue `trusted`: workers may not open
    cards, so they send what happened here."""
    payload = delivery.message.payload or {}
    await delivery.commit(open_card, payload["event"], UUID(payload["subject"]), payload.get("permissions") or [])


def open_card(event: str, connection_id: UUID, permissions: Sequence[str]) -> None:
    """Open the card for one event of `services.outbox`; a connection that is gone needs none."""
    row = Connection.objects.filter(pk=connection_id).first()
    if row is None:
        return
    match event:
        case "discovered":
            requests.open_connection_card(row)
        case "failed":
            recovery.open_failure_card(row)
        case "ends_soon":
            recovery.open_reconnect_card(row)
        case "widen":
            requests.open_escalation_card(row, permissions, stored_text("A tool needs it to run."))


async def check_connection(delivery: Delivery) -> None:
    """Check a connection's health. Handler of `connection_check`, a recurring job of each connection that is due at
    its `next_check_at`."""
    connection_id, lease = UUID(delivery.message.subject), delivery.lease.ref
    run, outcome = await in_scope(delivery.tenant_id, _begin_check, connection_id, lease), None
    if run is not None:
        work = health.HealthCheck(delivery.tenant_id, connection_id, lease)
        outcome = await _call(run, Script.HEALTH_CHECK, work, connection=connection_id)
    await delivery.reschedule(_conclude_check, connection_id, run, outcome)


def _begin_check(connection_id: UUID, lease: LeaseRef) -> RunRef | None:
    return _open_run(Script.HEALTH_CHECK, lease) if health.is_due(connection_id) else None


def _conclude_check(connection_id: UUID, run: RunRef | None, outcome: CallOutcome | None) -> datetime | None:
    if run is not None:
        if not isinstance(outcome, Done):
            health.postpone(connection_id)
        _close_run(run)
    return health.next_check_at(connection_id)


async def discover(delivery: Delivery) -> None:
    """Ask the skill's `discover.py` how an account would be signed in to, before a person is asked for an approval
    (spec 5.10.1, step 1). Handler of `connection_discovery`."""
    connection_id, lease = UUID(delivery.message.subject), delivery.lease.ref
    run = await in_scope(delivery.tenant_id, _begin_discovery, connection_id, lease)
    if run is None:
        return
    work = _DiscoverCall(delivery.tenant_id, connection_id, lease)
    outcome = await _call(run, Script.DISCOVER, work, connection=connection_id)
    await delivery.commit(_conclude_discovery, run, work, outcome)


def _begin_discovery(connection_id: UUID, lease: LeaseRef) -> RunRef | None:
    return _open_run(Script.DISCOVER, lease) if discovery.is_pending(connection_id) else None


@dataclass
class _DiscoverCall:
    """The work of the guarded call of a discovery. `failure`: the problem that the script reported."""

    tenant_id: UUID
    connection_id: UUID
    lease: LeaseRef
    failure: ConnectionFailure | None = None

    def __call__(self, _: CallContext) -> HandlerResult:
        job = scripts.load_job(self.tenant_id, self.connection_id)
        answer, _credentials = scripts.run_script(job, Script.DISCOVER, {"identity_hint": {}})
        if "failure" in answer:
            self.failure = parse_failure(answer["failure"])
            raise scripts.call_failed("discovery_failed", "The service cannot be connected as it is.")
        try:
            result = Discovery.model_validate(answer)
        except ValidationError as error:
            raise scripts.call_failed("discovery_unreadable", "The script did not say how to sign in.") from error
        return HandlerResult({}, on_settle=lambda: discovery.record_result(self.connection_id, self.lease, result))


def _conclude_discovery(run: RunRef, work: _DiscoverCall, outcome: CallOutcome) -> None:
    if not isinstance(outcome, Done):
        discovery.record_failure(work.connection_id, work.lease.message_pk, work.failure)
    _close_run(run)


def give_up_discovery(message: QueueMessage) -> bool:
    """Record the failure of a discovery whose message is dead, so that the requester learns of it."""
    discovery.record_failure(UUID(message.subject), message.pk, None)
    return True


async def run_setup(delivery: Delivery, *, limits: Limits | None = None) -> None:
    """Hold a set-up conversation to its end. Handler of `connection_setup`.

    A person may think for minutes, so the bus runs it in a thread beside the worker's other work. When a worker dies
    the message is delivered again, and the conversation then fails: a script cannot be resumed in its middle.
    """
    begun = await in_scope(delivery.tenant_id, _begin_setup, UUID(delivery.message.subject), delivery.lease.ref)
    if begun is None:
        return
    setup, run = begun
    session = SetupSession(delivery.tenant_id, setup.pk, delivery.lease.ref, limits or Limits())
    seconds = session.limits.whole + CALL_SECONDS
    outcome = await _call(run, Script.SETUP, session, seconds=seconds, connection=setup.connection_id, setup=setup.pk)
    await delivery.commit(_conclude_setup, run, session, outcome)


def _begin_setup(setup_id: UUID, lease: LeaseRef) -> tuple[SetupRun, RunRef] | None:
    setup = setup_state.begin_session(setup_id)
    return (setup, _open_run(Script.SETUP, lease, origin=setup.connection_id)) if setup else None


def _conclude_setup(run: RunRef, session: SetupSession, outcome: CallOutcome) -> None:
    if not isinstance(outcome, Done):
        code = outcome.code if isinstance(outcome, Failed) else "refused"
        setup_state.fail(session.setup_id, code=str(code), failure=session.failure)
    _close_run(run)


def give_up_setup(message: QueueMessage) -> bool:
    """Fail a set-up whose message is dead, which opens a card."""
    setup_state.fail(UUID(message.subject), code="worker_lost")
    return True


async def clean_keyring(delivery: Delivery) -> None:
    """Remove stray values from the keyring. Handler of `keyring_cleanup`, a recurring job of the installation."""
    await asyncio.to_thread(keyring_cleanup.remove_strays)
    await delivery.reschedule(lambda: now() + CLEANUP_INTERVAL)


def _open_run(script: Script, lease: LeaseRef, *, origin: UUID | None = None) -> RunRef:
    """Open a guarded run for the script's tool alone, inside the caller's scope. `origin`: the row it is for, if
    any."""
    tool = scripts.TOOL.format(script=script.value)
    run = guard.open_run(
        Origin.WORK, origin or uuid4(), deployment_id=None, phase=Phase.EXECUTION, allow=[tool], critical=False
    )
    return RunRef(current_tenant_id(), run.pk, lease)


async def _call(
    run: RunRef, script: Script, work: scripts.Work, *, seconds: float = CALL_SECONDS, **about: UUID
) -> CallOutcome:
    """Do `work` in one guarded call; `about` is what the ledger records as its arguments."""
    tool = scripts.TOOL.format(script=script.value)
    args = {name: str(value) for name, value in about.items()}
    call = Call(tool=tool, args=args, access=frozenset({tool}), patience_seconds=seconds)
    return await guard.guarded_call(run, Intent.RUN_CONNECTION, call, context={"work": work})


def _close_run(run: RunRef) -> None:
    guard.close_run(run.run_id, status=RunStatus.COMPLETED, reason=TerminalReason.COMPLETED)


register(Queue.TRUSTED, Kind.CONNECTION_OWED, handle_event)
register_job(Kind.CONNECTION_CHECK, check_connection, recurring=True, max_concurrency=CONCURRENCY)
register_job(Kind.CONNECTION_DISCOVERY, discover, max_concurrency=CONCURRENCY)
register_job(Kind.CONNECTION_SETUP, run_setup, max_concurrency=CONCURRENCY)
register_job(Kind.KEYRING_CLEANUP, clean_keyring, recurring=True)
on_dead_letter(give_up_discovery, Kind.CONNECTION_DISCOVERY)
on_dead_letter(give_up_setup, Kind.CONNECTION_SETUP)
