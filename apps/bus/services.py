"""How is a message handed over so that none is lost and none has its effect twice? (spec 19.2; contract silas 15)

Delivery is at least once: whoever leases must ack before the lease runs out, or the message is delivered again. An
effect is exactly once when `mark_processed` commits with it. Everything here runs inside the caller's tenant scope, a
statement each; the database's clock decides, so replicas need not agree on the time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import connection
from django.db.models import F
from django.db.models.functions import Now

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus import rules, signals
from apps.bus.enums import Kind, Queue, Sender, State
from apps.bus.models import QueueMessage
from apps.bus.queries import has_processed as has_processed
from apps.bus.queries import pending_count as pending_count
from apps.bus.queries import waiting_scopes
from apps.bus.schemas import AlreadyProcessed, Lease, LeaseLost
from kernel.taint import Taint
from kernel.tenancy import current_tenant_id

_LEASE = "SELECT * FROM bus_lease(%s, %s, %s, %s, %s, %s)"
_ACK = """
    UPDATE bus_queuemessage SET state = 'acked', leased_until = NULL, finished_at = statement_timestamp()
    WHERE id = %s AND fence = %s AND leased_until IS NOT NULL
"""
_ENQUEUE = """
    INSERT INTO bus_queuemessage (id, tenant_id, queue, kind, message_id, trace_id, scope_id, content, payload, sender,
                                  taint, task_id, state, attempts, consumer, fence, reason)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s::jsonb, %s, %s, %s, 'queued', 0, '', 0, '')
    ON CONFLICT (tenant_id, queue, message_id) DO NOTHING
    RETURNING position, created_at, available_at
"""


def enqueue(
    queue: str,
    *,
    kind: str,
    scope_id: UUID | str,
    sender: str,
    content: str = "",
    payload: Mapping[str, Any] | None = None,
    trace_id: str | None = None,
    message_id: str | None = None,
    taint: str = Taint.EXTERNAL,
    task_id: UUID | None = None,
) -> QueueMessage:
    """Put a message at the end of its scope; one INSERT.

    `message_id` is the idempotency key: given again on the same queue, the first message is returned and nothing is
    added. `trace_id` is copied unchanged from the message this one follows from; a new one begins a trace.
    """
    message = QueueMessage(
        tenant_id=current_tenant_id(),
        queue=Queue(queue).value,
        kind=Kind(kind).value,
        message_id=message_id or str(uuid4()),
        trace_id=trace_id or str(uuid4()),
        scope_id=str(scope_id),
        content=content,
        payload=dict(payload) if payload is not None else None,
        sender=Sender(sender).value,
        taint=Taint(taint).value,
        task_id=task_id,
    )
    return _insert(message) or QueueMessage.objects.get(queue=message.queue, message_id=message.message_id)


def _insert(message: QueueMessage) -> QueueMessage | None:
    payload = None if message.payload is None else json.dumps(message.payload)
    names = ("id", "tenant_id", "queue", "kind", "message_id", "trace_id", "scope_id", "content")
    values: list[Any] = [getattr(message, name) for name in names]
    values += [payload, message.sender, message.taint, message.task_id]
    with connection.cursor() as cursor:
        cursor.execute(_ENQUEUE, values)
        row = cursor.fetchone()
    if row is None:
        return None
    message.position, message.created_at, message.available_at = row
    message._state.adding = False
    return message


def lease(queue: str, *, consumer: str, scope_id: UUID | str | None = None, seconds: float = 300) -> Lease | None:
    """Take the oldest message that may be delivered, of one scope or of all; None when there is none.

    One statement. At most one message of a scope is leased at a time and order inside a scope is kept: while the oldest
    is leased or waits for its next attempt, the younger ones wait behind it.
    """
    scope = None if scope_id is None else str(scope_id)
    wish = [current_tenant_id(), Queue(queue).value, scope, consumer, float(seconds), rules.MAX_ATTEMPTS]
    message: QueueMessage | None = next(iter(QueueMessage.objects.raw(_LEASE, wish)), None)
    return None if message is None else Lease(message, message.fence)


def heartbeat(lease: Lease, seconds: float = 120) -> None:
    """Hold the message for `seconds` from now on. Raises `LeaseLost`."""
    _change(lease, leased_until=Now() + timedelta(seconds=seconds))


def ack(lease: Lease) -> None:
    """The message is done with. Raises `LeaseLost` for a former holder, and with it undoes the caller's transaction."""
    with connection.cursor() as cursor:
        cursor.execute(_ACK, [lease.message.pk, lease.fence])
        if not cursor.rowcount:
            raise LeaseLost


def nack(lease: Lease, *, reason: str) -> None:
    """Give the message back after a failure: it is delivered again a little later, or is dead after the fifth time."""
    attempts = lease.message.attempts + 1
    if rules.state_after_failure(attempts) is State.DEAD:
        dead_letter(lease, reason)
        return
    due = Now() + timedelta(seconds=rules.wait_after_failure(attempts))
    _change(lease, state=State.QUEUED, leased_until=None, attempts=attempts, available_at=due, reason=reason[:200])


def dead_letter(lease: Lease, reason: str) -> None:
    """Bury the message: it is kept with its reason, never delivered again, and the rooms above are told."""
    _change(lease, **_burial(lease.message, reason))
    _tell_dead(lease.message)


def mark_processed(consumer: str, message_id: str) -> None:
    """Write down that the effect is done, in the effect's own transaction. Raises `AlreadyProcessed` for the second.

    A rival that is still running waits here until the first has committed, and then learns that it was second.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO bus_processed (id, tenant_id, consumer, message_id) VALUES (%s, %s, %s, %s)"
            " ON CONFLICT (tenant_id, consumer, message_id) DO NOTHING",
            [uuid4(), current_tenant_id(), consumer, message_id],
        )
        if not cursor.rowcount:
            raise AlreadyProcessed


def sweep() -> None:
    """Return what dead holders held, bury what has failed too often, and wake the consumers of what waits."""
    expired = QueueMessage.objects.filter(leased_until__lte=Now())
    expired.filter(attempts__lt=rules.MAX_ATTEMPTS - 1).update(
        state=State.QUEUED, leased_until=None, attempts=F("attempts") + 1, reason="lease_expired"
    )
    for message in expired.select_for_update(skip_locked=True, no_key=True):
        QueueMessage.objects.filter(pk=message.pk).update(**_burial(message, "lease_expired"))
        _tell_dead(message)
    for queue, scope_ids in waiting_scopes().items():
        signals.messages_waiting(queue, scope_ids)


def _change(lease: Lease, **values: Any) -> None:
    """Change the leased message if the lease is still the last one given; the row count is the answer.

    Only a leased message has an end (a constraint), and asking for that, not for the state, keeps to the small index.
    """
    held = QueueMessage.objects.filter(pk=lease.message.pk, fence=lease.fence, leased_until__isnull=False)
    if not held.update(**values):
        raise LeaseLost


def _burial(message: QueueMessage, reason: str) -> dict[str, Any]:
    message.attempts += 1
    message.reason = reason[:200]
    message.state = State.DEAD
    values = {"state": State.DEAD, "attempts": message.attempts, "reason": message.reason}
    return {**values, "leased_until": None, "finished_at": Now()}


def _tell_dead(message: QueueMessage) -> None:
    data = {"queue": message.queue, "kind": message.kind, "attempts": message.attempts}
    record(AuditEvent.MESSAGE_DEAD, subject=f"message:{message.pk}", data=data)
    signals.message_dead(message)
