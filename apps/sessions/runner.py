"""Which turns run in this web process? One task a conversation; the lease in the database keeps it to one everywhere.

`wake` is a poke after a message was committed. `pick_up_waiting` finds what a dead process left or a failure
postponed. A turn whose lease is lost is cancelled; what fails is given back to the queue, and is dead after the fifth
time.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from contextlib import suppress
from uuid import UUID

from django.conf import settings
from django.db import Error as DatabaseError

from apps.bus import services as bus
from apps.bus.enums import Queue
from apps.bus.queries import waiting_scopes
from apps.bus.schemas import Lease, LeaseLost
from apps.sessions import turn
from apps.sessions.state import TurnState
from apps.tenants.queries import all_tenants
from kernel.tenancy import in_scope, in_scope_patiently, in_thread
from kernel.tenancy.threads import take_the_slow_lane

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
        task.add_done_callback(lambda _: _ended(tenant_id, session_id))


def _ended(tenant_id: UUID, session_id: UUID) -> None:
    """Whoever woke the conversation between the task's last look and its end has found it running."""
    _tasks.pop(session_id, None)
    if session_id in _woken:
        wake(tenant_id, session_id)


async def pick_up_waiting() -> None:
    """Wake every conversation that is owed an answer and has nobody working on it."""
    for tenant in await in_thread(all_tenants):
        waiting = await in_scope(tenant.pk, waiting_scopes)
        for scope_id in waiting.get(Queue.PROXY, ()):
            wake(tenant.pk, UUID(scope_id))


async def settled() -> None:
    """Wait until no turn runs in this process (shutdown, tests)."""
    while _tasks:
        await asyncio.gather(*_tasks.values(), return_exceptions=True)


async def _drain(tenant_id: UUID, session_id: UUID) -> None:
    take_the_slow_lane()
    while session_id in _woken:
        _woken.discard(session_id)
        with suppress(asyncio.CancelledError):
            while await _one_turn(tenant_id, session_id):
                pass


async def _one_turn(tenant_id: UUID, session_id: UUID) -> bool:
    """Run the oldest waiting turn; False when there is none for us, or it failed and waits for its next attempt."""
    try:
        opened = await in_scope(tenant_id, turn.open_turn, session_id, consumer=CONSUMER)
    except DatabaseError:
        _log.warning("turn_not_opened session=%s", session_id, exc_info=True)
        return False
    if opened is None:
        return False
    heart = asyncio.get_running_loop().create_task(_beat(tenant_id, opened.lease, asyncio.current_task()))
    try:
        await turn.run(opened)
    except LeaseLost:
        _log.warning("turn_lease_lost session=%s", session_id)
        return False
    except Exception as error:  # noqa: BLE001 (whatever it was, the message goes back to its queue)
        _log.exception("turn_failed session=%s", session_id)
        await _give_back(opened, reason=type(error).__name__)
        return False
    finally:
        heart.cancel()
    return True


async def _give_back(opened: TurnState, *, reason: str) -> None:
    try:
        await in_scope_patiently(opened.tenant_id, settings.TURN_LEASE_SECONDS, turn.give_back, opened, reason=reason)
    except Exception:  # noqa: BLE001 (the database is away too: the lease runs out, and somebody tries again)
        _log.exception("turn_give_back_failed")


async def _beat(tenant_id: UUID, lease: Lease, work: asyncio.Task[None] | None) -> None:
    """Hold the lease while the turn runs; when somebody else has it, end the turn."""
    while True:
        await asyncio.sleep(settings.TURN_LEASE_SECONDS / 3)
        try:
            await in_scope(tenant_id, bus.heartbeat, lease, settings.TURN_LEASE_SECONDS)
        except LeaseLost:
            if work is not None:
                work.cancel()
            return
        except Exception:  # noqa: BLE001 (the database is away: the lease may run out, and somebody else answers)
            _log.exception("turn_heartbeat_failed")
