"""Send, lease and finish messages, with at-least-once delivery and exactly-once effects (spec 19.2; contract silas 15).

The holder of a lease must ack before it expires, or the message is delivered again. An effect happens exactly once when
`mark_processed` commits with it. Every function runs inside the caller's tenant scope, in one statement where possible;
the database's clock decides, so replicas need not agree on the time.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Unpack
from uuid import UUID, uuid4

from django.db import connection
from django.db.models import F
from django.db.models.functions import Greatest, Now
from psycopg.types.json import Jsonb
from pydantic import BaseModel, ValidationError

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus import registry, rules, signals, telemetry, wakeup
from apps.bus.enums import AGENTS, LIVE, QUEUE_OF, WORKER_OF, Kind, Queue, Sender, SetAside, State
from apps.bus.models import QueueMessage
from apps.bus.schemas import AlreadyProcessed, Lease, LeaseLost, Message, MessageFields, MessageRefused
from kernel import fault_points, tracing
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.taint import Taint
from kernel.tenancy import INSTALLATION, ModelRows, Read, current_tenant_id, for_each_row, read_together
from kernel.tenancy.reads import Rows

_log = logging.getLogger(__name__)
_MESSAGES = ModelRows(QueueMessage, "message")
_LEASE = f"""
    SELECT {_MESSAGES.columns}, EXISTS (SELECT FROM bus_processed done WHERE done.tenant_id = message.tenant_id
        AND done.consumer = ANY(%s::text[]) AND done.message_id = message.message_id) AS processed
    FROM bus_lease_of_scope(%s, %s, %s, %s, %s, %s) AS message
"""  # noqa: S608  (our own column names)
_COLUMNS = (
    *("id", "tenant_id", "queue", "kind", "message_id", "trace_id", "scope_id", "content", "sender", "taint"),
    *("task_id", "parent_task_id", "urgency", "error_code", "retryable", "origin_agent", "attempt_number"),
    *("state", "attempts", "consumer", "fence", "reason", "payload", "extras"),
)
_INSERT = f"""
    INSERT INTO bus_queuemessage ({", ".join(_COLUMNS)}, available_at)
    VALUES ({"%s, " * len(_COLUMNS)} coalesce(%s, statement_timestamp()))
    ON CONFLICT (tenant_id, queue, message_id)"""  # noqa: S608  (our own column names)
_ENQUEUE = f"{_INSERT} DO NOTHING RETURNING position, created_at, available_at"
_SCHEDULE = f"""{_INSERT} DO UPDATE SET
        available_at = excluded.available_at, state = 'queued', attempts = 0, finished_at = NULL, reason = ''
    WHERE bus_queuemessage.state <> 'leased'
    RETURNING position, created_at, available_at
"""
# Only a leased message has `leased_until` (a constraint).
_ACK = f"""
    UPDATE bus_queuemessage SET state = 'acked', leased_until = NULL, finished_at = statement_timestamp()
    WHERE tenant_id = %s AND id = %s AND fence = %s AND leased_until IS NOT NULL
    RETURNING EXISTS (SELECT FROM bus_queuemessage other WHERE other.tenant_id = bus_queuemessage.tenant_id
        AND other.queue = bus_queuemessage.queue AND other.scope_id = bus_queuemessage.scope_id
        AND other.id <> bus_queuemessage.id AND other.state IN ({", ".join(f"'{state.value}'" for state in LIVE)}))
"""  # noqa: S608  (our own words)
_EXTRAS = {"plan_markdown", "approval_token", "constraints"}
_ERROR_HEADERS = ("error_code", "retryable", "origin_agent", "attempt_number")
_PLAIN = set(Message.model_fields) - _EXTRAS - {"error_code", "origin_agent"}


def send_message(
    queue: str,
    *,
    kind: str,
    scope_id: UUID | str,
    sender: str,
    payload: Mapping[str, object] | BaseModel | None = None,
    trace_id: str | None = None,
    message_id: str | None = None,
    due_at: datetime | None = None,
    **fields: Unpack[MessageFields],
) -> QueueMessage:
    """Append a message to its scope with one INSERT, and wake a worker for it after the commit.

    `due_at`: not delivered before; None: at once. `message_id` is the idempotency key: given again on the same queue,
    the first message is returned and nothing is added. `trace_id` is copied from the message that caused this one; by
    default it is the current span's (`kernel.tracing`), or a new one. Raises `MessageRefused` with a code when kind,
    queue, sender and content do not fit together (`rules.ROUTES`).
    """
    if isinstance(payload, BaseModel):
        payload = payload.model_dump(mode="json", exclude_none=True)
    headers = {name: payload.get(name) for name in _ERROR_HEADERS} if payload and "error_code" in payload else {}
    try:
        message = Message(
            queue=queue,
            kind=kind,
            message_id=message_id or str(uuid4()),
            trace_id=trace_id or tracing.trace_for_message(),
            scope_id=str(scope_id),
            sender=sender,
            payload=payload,
            **(headers | fields),
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise MessageRefused(ErrorCode.FIELD_WRONG, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    if fault := rules.fault_of(message):
        raise fault
    row = QueueMessage(
        tenant_id=current_tenant_id(),
        **message.model_dump(include=_PLAIN),
        error_code=message.error_code or "",
        origin_agent=message.origin_agent or "",
        extras=message.model_dump(mode="json", include=_EXTRAS, exclude_none=True) or None,
    )
    generated = _insert(_ENQUEUE, row, due_at)
    _wake(message.queue, due_at)
    if generated is None:
        return QueueMessage.objects.get(queue=row.queue, message_id=row.message_id)
    row.position, row.created_at, row.available_at = generated
    # Our own INSERT has stored the row; Django would still insert it again on `save()`.
    row._state.adding = False
    record_step(AuditEvent.MESSAGE_QUEUED, row)
    return row


def enqueue(
    kind: Kind,
    *,
    scope_id: UUID | str,
    payload: Mapping[str, object] | None = None,
    message_id: str | None = None,
    due_at: datetime | None = None,
) -> QueueMessage:
    """Enqueue a job: a message for a handler of its kind rather than between agents; its queue is `enums.QUEUE_OF`.

    Each kind has scopes of its own, so a job never waits behind another kind's about the same thing. `message_id` and
    `due_at` are as in `send_message`.
    """
    return send_message(
        QUEUE_OF[kind],
        kind=kind,
        scope_id=rules.scope_of(kind, scope_id),
        sender=Sender.RUNTIME,
        payload=payload,
        message_id=message_id,
        due_at=due_at,
        taint=Taint.AUTH,
    )


def schedule(kind: Kind, *, scope_id: UUID | str, due_at: datetime) -> None:
    """Deliver the recurring job of this kind and scope at `due_at`: inserts its one row, or moves it.

    A row that is leased is not changed: its handler computes the next time itself, from the row that the job is about,
    locked in the transaction of `Delivery.reschedule`. So a caller who changes that row first and then calls this, in
    one transaction, is never missed. The handler is registered with `recurring=True`.
    """
    scope = rules.scope_of(kind, scope_id)
    row = QueueMessage(
        tenant_id=current_tenant_id(),
        queue=QUEUE_OF[kind],
        kind=kind,
        message_id=scope,
        trace_id=tracing.trace_for_message(),
        scope_id=scope,
        sender=Sender.RUNTIME,
        taint=Taint.AUTH,
    )
    _insert(_SCHEDULE, row, due_at)
    _wake(QUEUE_OF[kind], due_at)


def _insert(statement: str, row: QueueMessage, due_at: datetime | None) -> Any:
    """Returns the row's generated values, None if it was there already and is not changed."""
    values = (getattr(row, name) for name in _COLUMNS)
    # The driver does not adapt a plain dict.
    parameters: list[Any] = [Jsonb(value) if isinstance(value, dict) else value for value in values]
    with connection.cursor() as cursor:
        cursor.execute(statement, [*parameters, due_at])
        return cursor.fetchone()


def _wake(queue: Queue, due_at: datetime | None = None) -> None:
    if (due_at is None or due_at <= now()) and (worker := WORKER_OF.get(queue)):
        wakeup.wake_after_commit(worker)


def reschedule(lease: Lease, due_at: datetime) -> None:
    """End the delivery of a recurring job and deliver it again at `due_at`. Raises `LeaseLost`.

    At the earliest in one second, so that a process whose clock is behind the database's does not loop.
    """
    due = Greatest(due_at, Now() + timedelta(seconds=1))
    _change(lease, state=State.QUEUED, leased_until=None, attempts=0, available_at=due, reason="")
    telemetry.done(lease.message, lease.held_for)


def record_step(event: AuditEvent, message: QueueMessage) -> None:
    """Audit a step of a message between agents.

    Other messages are not audited as such, because their effects are: an accepted message, a completed turn.
    """
    if message.queue not in AGENTS:
        return
    data = {"queue": message.queue, "kind": message.kind, "trace": message.trace_id, "attempt": message.attempts + 1}
    record(event, subject=f"message:{message.pk}", data=data)


def lease(
    queue: str,
    *,
    consumer: str,
    scope_id: UUID | str,
    names: Sequence[str] = (),
    seconds: float = 300,
    along: Sequence[Read[Any]] = (),
) -> Lease | None:
    """Lease the oldest message of a scope; None when it may not be delivered.

    At most one message of a scope is leased at a time, and order inside a scope is kept: while the oldest is leased or
    waits for its next attempt, the others wait behind it. `Lease.processed`: an effect is already marked under one of
    `names`. `along`: reads that are sent with it.
    """
    scope = [current_tenant_id(), Queue(queue).value, str(scope_id)]
    values = [list(names), *scope, consumer, float(seconds), rules.MAX_ATTEMPTS]
    leased = Read(_LEASE, values, list)
    read_together(leased, *along)
    if not leased.value:
        return None
    (message,) = _MESSAGES.models(leased.value)
    fault_points.reach("bus.leased")
    telemetry.taken(message)
    return Lease(message, message.fence, processed=leased.value[0][-1])


def heartbeat(lease: Lease, seconds: float = 120) -> None:
    """Extend the lease to `seconds` from now. Raises `LeaseLost`."""
    _change(lease, leased_until=Now() + timedelta(seconds=seconds))
    telemetry.renewed(lease.message)


def ack(lease: Lease) -> bool:
    """Finish the message; returns whether others of its scope are unfinished. Raises `LeaseLost` for a former holder,
    which rolls the caller's transaction back."""
    return ack_with(lease).value


def ack_with(lease: Lease) -> Read[bool]:
    """`ack` as a statement that can be sent together with others."""

    def ended(rows: Rows) -> bool:
        if not rows:
            raise LeaseLost
        telemetry.done(lease.message, lease.held_for)
        return bool(rows[0][0])

    return Read(_ACK, [current_tenant_id(), lease.message.pk, lease.fence], ended)


def nack(lease: Lease, *, reason: str) -> None:
    """Return the message to its queue after a failure: retried with a delay, a dead letter after the fifth attempt."""
    attempts = lease.message.attempts + 1
    if attempts >= rules.MAX_ATTEMPTS:
        dead_letter(lease, reason)
        return
    # 1, 2, 4, 8 seconds. The scope waits too, so order holds.
    due = Now() + timedelta(seconds=min(1 << (attempts - 1), rules.MAX_WAIT_SECONDS))
    _change(lease, state=State.QUEUED, leased_until=None, attempts=attempts, available_at=due, reason=reason[:200])


def defer(lease: Lease, *, seconds: float, reason: str) -> None:
    """Return the message to its queue for a while without counting a failure. Raises `LeaseLost`."""
    due = Now() + timedelta(seconds=seconds)
    _change(lease, state=State.QUEUED, leased_until=None, available_at=due, reason=reason[:200])


def release_deferred(queue: str, *, reason: str) -> None:
    """Make messages that were deferred for this reason available at once."""
    waiting = QueueMessage.objects.filter(queue=queue, state=State.QUEUED, reason=reason, available_at__gt=Now())
    if waiting.update(available_at=Now()):
        _wake(Queue(queue))


def ack_duplicates(lease: Lease) -> None:
    """Ack the queued messages of the same kind and scope, which announce what the caller is about to read.

    For a handler that processes its whole scope at once, so that many messages cost one run. Call it first in the
    transaction that ends the delivery; what is committed later has a message of its own.
    """
    leased = lease.message
    duplicates = QueueMessage.objects.filter(
        queue=leased.queue, kind=leased.kind, scope_id=leased.scope_id, state=State.QUEUED
    )
    duplicates.update(state=State.ACKED, finished_at=Now(), reason="absorbed")


def dead_letter(lease: Lease, reason: str) -> None:
    """Make the message a dead letter: kept with its reason, not delivered again, and reported."""
    _change(lease, **_dead_values(lease.message, reason))
    _report_dead(lease.message)


def mark_processed(consumer: str, message_id: str) -> None:
    """Mark the effect as done, in the effect's own transaction. Raises `AlreadyProcessed` when it is marked already.

    A concurrent delivery waits here until the first one has committed.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            # An insert, not a read before it: two deliveries at once would both read nothing and both have the effect.
            "INSERT INTO bus_processed (id, tenant_id, consumer, message_id) VALUES (%s, %s, %s, %s)"
            " ON CONFLICT (tenant_id, consumer, message_id) DO NOTHING",
            [uuid4(), current_tenant_id(), consumer, message_id],
        )
        if not cursor.rowcount:
            raise AlreadyProcessed


def expire_leases() -> None:
    """Requeue messages whose lease expired, and make dead letters of those without attempts left.

    A worker calls it when `queries.due_scopes` reports such a scope; `lease` takes the others without it.
    """
    expired = QueueMessage.objects.filter(leased_until__lte=Now())
    lost = Counter(expired.order_by().values_list("queue", flat=True))
    if not lost:
        return
    expired.filter(attempts__lt=rules.MAX_ATTEMPTS - 1).update(
        state=State.QUEUED, leased_until=None, attempts=F("attempts") + 1, reason="lease_expired"
    )
    # What still matches has no attempt left. A locked row is being buried by another worker.
    for message in expired.select_for_update(skip_locked=True, no_key=True):
        QueueMessage.objects.filter(pk=message.pk).update(**_dead_values(message, "lease_expired"))
        _report_dead(message)
    for queue, times in lost.items():
        telemetry.expired(queue, times)
        _wake(Queue(queue))


def release_leases(consumer: str) -> None:
    """End the leases of a killed process now, so that its messages are delivered again or become dead letters."""
    QueueMessage.objects.filter(consumer=consumer, leased_until__isnull=False).update(leased_until=Now())
    expire_leases()


def revoke(message_pk: UUID) -> None:
    """Cancel the message even if it is leased: its holder loses the lease, and its scope is free."""
    QueueMessage.objects.filter(pk=message_pk, state__in=LIVE).update(
        state=State.ACKED, leased_until=None, finished_at=Now(), reason="revoked"
    )


def _change(lease: Lease, **values: object) -> None:
    """Update the leased message if this lease is still the last one given. Raises `LeaseLost` otherwise."""
    # Only a leased message has `leased_until` (a constraint); filtering by it, not by state, uses the small index.
    held = QueueMessage.objects.filter(pk=lease.message.pk, fence=lease.fence, leased_until__isnull=False)
    if not held.update(**values):
        raise LeaseLost


def _dead_values(message: QueueMessage, reason: str) -> dict[str, object]:
    """Values for a message that failed for good. A recurring job is retried after a pause instead."""
    message.attempts += 1
    message.reason = reason[:200]
    values = {"leased_until": None, "reason": message.reason}
    if registry.is_recurring(message.queue, message.kind):
        pause = Now() + timedelta(seconds=rules.RECURRING_RETRY_SECONDS)
        return {**values, "state": State.QUEUED, "attempts": 0, "available_at": pause}
    message.state = State.DEAD
    return {**values, "state": State.DEAD, "attempts": message.attempts, "finished_at": Now()}


def _report_dead(message: QueueMessage) -> None:
    """Audit the dead letter and notify its handler or the company's owners; log what belongs to no company."""
    has_company = current_tenant_id() != INSTALLATION
    if has_company:
        data = {"queue": message.queue, "kind": message.kind, "attempts": message.attempts}
        record(AuditEvent.MESSAGE_DEAD, subject=f"message:{message.pk}", data=data)
    else:
        _log.error("message_dead queue=%s kind=%s reason=%s", message.queue, message.kind, message.reason)
    # Isolated: an error of this handler would roll the burial back, and the message would be delivered for ever.
    handler = registry.dead_letter_handler_of(message.kind)
    is_notified = handler is not None and for_each_row([message], handler)
    if has_company and not is_notified:
        signals.set_aside(SetAside.MESSAGE, "system")
