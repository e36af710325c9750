"""Take in a secret that a person types, over `POST /secrets/{ref_id}`, straight into its sealed row.

A secret is stored once, in time, for a set-up of its own tenant that still waits for it, by a member who may decide
cards. Only its reference is answered, logged or audited (spec 5.10.1). Inside the caller's tenant scope.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.connections import credentials, rules
from apps.connections.enums import SetupState
from apps.connections.models import PendingSecret, SetupRun
from apps.tenants.enums import Capability
from apps.tenants.models import User
from apps.tenants.queries import require_role
from apps.tenants.rules import roles_with
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError

EXPIRES_AFTER = timedelta(minutes=30)


def request_secret(setup: SetupRun, name: str) -> PendingSecret:
    """Return the reference for the secret of this name; the same one when the script asks again."""
    row: PendingSecret
    row, _ = PendingSecret.objects.get_or_create(setup=setup, name=name, defaults={"expires_at": now() + EXPIRES_AFTER})
    return row


def store_secret(ref_id: UUID, value: str, *, user: User) -> None:
    """Seal the value for its set-up. Raises `not_found` 404 for an unknown or foreign reference, 409
    `secret_stored_already`, `secret_expired`, 400 `secret_unfit` for a value that is empty or too long, and 403 for a
    member who may not decide."""
    require_role(user, roles_with(Capability.DECIDE))
    row = PendingSecret.objects.filter(pk=ref_id).select_related("setup").first()
    if row is None:
        raise NotFound()
    if not 0 < len(value.encode(errors="replace")) <= credentials.MAX_BYTES:
        raise SilasError(ErrorCode.SECRET_UNFIT)
    _claim(row)
    credentials.store(row.setup.connection_id, {row.name: value}, setup=row.setup)
    record(AuditEvent.SECRET_STORED, actor=f"user:{user.pk}", subject=f"secret:{ref_id}")


def _claim(row: PendingSecret) -> None:
    # Locking the set-up first keeps the order of `locks`: the set-up may be ending at this moment.
    moment = now()
    setup = SetupRun.objects.select_for_update(no_key=True).get(pk=row.setup_id)
    waiting = PendingSecret.objects.filter(pk=row.pk, stored_at=None, expires_at__gt=moment)
    if SetupState(setup.state) in rules.UNDER_WAY and setup.deadline > moment and waiting.update(stored_at=moment):
        return
    if PendingSecret.objects.filter(pk=row.pk, stored_at__isnull=False).exists():
        raise SilasError(ErrorCode.SECRET_STORED_ALREADY)
    raise SilasError(ErrorCode.SECRET_EXPIRED)
