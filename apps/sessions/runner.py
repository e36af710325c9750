"""Run queued chat turns in this web process, one asyncio task per conversation; the lease in the database keeps it to
one everywhere.

`wake` is a poke after a message was committed. `pick_up_waiting` finds what a dead process left or a failure
postponed. A turn whose lease is lost is cancelled; what fails is given back to the queue, and is dead after the fifth
time.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from uuid import UUID

from django.conf import settings
from django.db import Error as DatabaseError

from apps.bus import services as bus
from apps.bus.deliveries import keep_lease_alive
from apps.bus.enums import Queue
from apps.bus.queries import due_scopes
from apps.bus.schemas import LeaseLost
from apps.sessions import turn
from apps.sessions.state import TurnState
from apps.sessions.telemetry import TurnOutcome, turn_ended
from kernel import tracing
from kernel.errors import error_location
from kernel.tenancy import in_scope, in_thread, with_retry
from kernel.tenancy.threads import use_low_priority_pool
from kernel.tracing import ActiveSpan, SpanName

_log = logging.getLogger(__name__)
CONSUMER = f"web:{socket.gethostname()[:40]}:{os.getpid()}"

_tasks: dict[UUID, asyncio.Task[None]] = {}
_woken: set[UUID] = set()


def wake(tenant_id: UUID, session_id: UUID) -> None:
    """Answer what waits in this conversation, here, unless another process already does."""
    _woken.add(session_id)
    if session_id not in _tasks:
        task = asyncio.get_running_loop().create_task(_drain(tenant_id, session_id))
        _tasks[session_id] = task
        # The loop keeps only a weak reference to a task; `_tasks` keeps it until its end.
        task.add_done_callback(lambda ended: _ended(tenant_id, session_id, stopped=ended.cancelled()))


def _ended(tenant_id: UUID, session_id: UUID, *, stopped: bool = False) -> None:
    """Wake again a conversation that was woken between the task's last look and its end. When the process
    stops, another one's sweep finds what is left."""
    _tasks.pop(session_id, None)
    if stopped:
        _woken.discard(session_id)
    elif session_id in _woken:
        wake(tenant_id, session_id)


async def pick_up_waiting() -> None:
    """Wake every conversation with an unanswered message and no running turn, with one query for all tenants."""
    for scope in await in_thread(due_scopes, [Queue.PROXY]):
        # No attempt is left: no lease is given for it, and what follows in the conversation waits until it is a dead
        # letter.
        if scope.exhausted:
            await in_scope(scope.tenant_id, bus.expire_leases)
        wake(scope.tenant_id, UUID(scope.scope_id))


async def settled() -> None:
    """Wait until no turn runs in this process (shutdown, tests)."""
    while _tasks:
        await asyncio.gather(*_tasks.values(), return_exceptions=True)


async def _drain(tenant_id: UUID, session_id: UUID) -> None:
    # Saving a message goes first: many running turns must not delay the acknowledgement of another visitor.
    use_low_priority_pool()
    while session_id in _woken:
        _woken.discard(session_id)
        while await _one_turn(tenant_id, session_id):
            pass


async def _one_turn(tenant_id: UUID, session_id: UUID) -> bool:
    """Run the oldest waiting turn. True when another waits behind it; not when one failed and waits for its next
    attempt: the sweep finds that.
    """
    woken_ns = time.time_ns()
    try:
        opened = await in_scope(tenant_id, turn.open_turn, session_id, consumer=CONSUMER)
    except DatabaseError as error:
        _log.warning("turn_not_opened session=%s error=%s", session_id, error_location(error))
        return False
    if opened is None:
        return False
    begun, outcome = time.monotonic(), TurnOutcome.FAILED
    try:
        with tracing.span(
            SpanName.TURN,
            parent=opened.lease.message.trace_id,
            start_ns=woken_ns,
            tenant=tenant_id,
            deployment=opened.session.deployment_id,
            conversation=session_id,
            turn=opened.number,
            attempt=opened.lease.message.attempts + 1,
        ) as span:
            outcome = await _answer(opened, span)
            span.set(outcome=outcome)
    finally:
        turn_ended(outcome, time.monotonic() - begun)
    return opened.more and outcome in (TurnOutcome.ANSWERED, TurnOutcome.STOPPED)


async def _answer(opened: TurnState, span: ActiveSpan) -> TurnOutcome:
    try:
        async with keep_lease_alive(opened.tenant_id, opened.lease, settings.TURN_LEASE_SECONDS):
            await turn.run(opened)
    except LeaseLost as lost:
        span.fail(lost)
        _log.warning("turn_lease_lost session=%s", opened.session.pk)
        return TurnOutcome.LEASE_LOST
    except Exception as error:  # noqa: BLE001 (after any error the message goes back to its queue)
        span.fail(error)
        _log.error("turn_failed session=%s error=%s", opened.session.pk, error_location(error))
        await _give_back(opened, reason=type(error).__name__)
        return TurnOutcome.FAILED
    return TurnOutcome.ANSWERED if opened.stop is None else TurnOutcome.STOPPED


async def _give_back(opened: TurnState, *, reason: str) -> None:
    try:
        await with_retry(opened.tenant_id, settings.TURN_LEASE_SECONDS, turn.give_back, opened, reason=reason)
    except Exception as error:  # noqa: BLE001 (the database is away too: the lease runs out, and another process tries again)
        _log.error("turn_give_back_failed error=%s", error_location(error))
