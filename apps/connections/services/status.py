"""Change a connection's status under its lock, as `rules.TRANSITIONS` allows, with an audit entry."""

from __future__ import annotations

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus import services as bus
from apps.bus.enums import Kind
from apps.connections import rules
from apps.connections.enums import ConnectionStatus
from apps.connections.models import Connection
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext


def change_status(row: Connection, to: ConnectionStatus, *fields: str, actor: str = "system", reason: str = "") -> None:
    """Change the status of the locked connection and save `fields` with it; the same status only saves `fields`.

    Raises `SilasError("connection_settled")` 409 for a transition that is not allowed.
    """
    before = ConnectionStatus(row.status)
    if to is not before and to not in rules.TRANSITIONS[before]:
        message = gettext("This isn't possible in the connection's current state: {state}.").format(state=before.label)
        raise SilasError(ErrorCode.CONNECTION_SETTLED, message)
    row.status = to
    row.save(update_fields=["status", *fields])
    if to is not before:
        data = {"status": to.value, **({"reason": reason} if reason else {})}
        record(AuditEvent.CONNECTION_MOVED, actor=actor, subject=f"connection:{row.pk}", data=data)


def schedule_check(row: Connection) -> None:
    """Have a worker check the locked connection at its `next_check_at`."""
    if row.next_check_at is not None:
        bus.schedule(Kind.CONNECTION_CHECK, scope_id=row.pk, due_at=row.next_check_at)
