"""How does a connection's status move? As `rules.TRANSITIONS` says, under its lock, written down."""

from __future__ import annotations

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus import services as bus
from apps.bus.enums import Kind
from apps.connections import rules, signals
from apps.connections.enums import ConnectionStatus
from apps.connections.models import Connection
from kernel.errors import SilasError


def change_status(row: Connection, to: ConnectionStatus, *fields: str, actor: str = "system", reason: str = "") -> None:
    """Raises `SilasError("connection_settled")` 409 for a way that there is not. To where it is already is no move, but
    saves `fields`."""
    before = ConnectionStatus(row.status)
    if to is not before and to not in rules.TRANSITIONS[before]:
        message = f"A connection that is {before.label.lower()} cannot do that."
        raise SilasError("connection_settled", message, status=409)
    row.status = to
    row.save(update_fields=["status", *fields])
    if to is not before:
        data = {"status": to.value, **({"reason": reason} if reason else {})}
        record(AuditEvent.CONNECTION_MOVED, actor=actor, subject=f"connection:{row.pk}", data=data)
    signals.connection_changed(row)


def schedule_check(row: Connection) -> None:
    """Have a worker check the locked connection at its `next_check_at`."""
    if row.next_check_at is not None:
        bus.schedule(Kind.CONNECTION_CHECK, scope_id=row.pk, due_at=row.next_check_at)
