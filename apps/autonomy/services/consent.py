"""Consent to automations: the company's by its settings, each member's for their own tasks.

Withdrawing consent does not stop what runs; a running session can always be halted by members who may.
"""

from __future__ import annotations

from uuid import UUID

from django.db import IntegrityError, transaction
from pydantic import ValidationError

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.autonomy import queries
from apps.autonomy.enums import Egress
from apps.autonomy.models import AutonomySettings, MemberOptIn, Task
from apps.autonomy.schemas import TaskLimits
from apps.autonomy.services.bus_messages import enqueue_admission
from apps.autonomy.signals import automations_enabled
from apps.tenants.enums import Capability, Role
from apps.tenants.models import Membership, User
from apps.tenants.queries import require_role
from apps.tenants.rules import roles_with
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext

MAY_SET_UP = roles_with(Capability.DECIDE)
_BOUNDS = {
    "max_concurrent": (0, 100),
    "idle_seconds": (30, 86_400),
    "retry_base_seconds": (1, 3600),
    "retry_most_seconds": (1, 86_400),
}


def opt_in(user: User) -> None:
    """Record that the member allows their tasks to run unattended. Raises 403 for a stranger."""
    role = require_role(user, MAY_SET_UP)
    membership = Membership.objects.get(user_id=user.pk)
    _, is_new = MemberOptIn.objects.get_or_create(user_id=user.pk, defaults={"membership": membership})
    if is_new:
        record(AuditEvent.AUTONOMY_OPTED, actor=user.actor, data={"allowed": True, "role": role.value})


def opt_out(user: User) -> None:
    """Start none of the member's tasks any more; what runs continues until it ends or is halted."""
    _withdraw(user.pk, actor=user.actor)


def withdraw_opt_in_without_role(user_id: UUID, role: Role, *, actor: str) -> None:
    """Withdraw the consent of a member who may no longer set up tasks; regaining the role does not restore it."""
    if role not in MAY_SET_UP:
        _withdraw(user_id, actor=actor)


def _withdraw(user_id: UUID, *, actor: str) -> None:
    deleted, _ = MemberOptIn.objects.filter(user_id=user_id).delete()
    if deleted:
        record(AuditEvent.AUTONOMY_OPTED, actor=actor, data={"allowed": False})


def require_task_control(task: Task, user: User) -> None:
    """Only its member and owners may change a task, because it runs under its member's consent. Raises 403."""
    if require_role(user, MAY_SET_UP) is not Role.OWNER and task.owner_id != user.pk:
        raise SilasError(ErrorCode.TASK_OF_ANOTHER)


def require_opt_in(user: User) -> None:
    """A member must opt in before they start, set up or delete a task. Raises 403."""
    if not queries.has_opted_in(user.pk):
        raise SilasError(ErrorCode.NOT_OPTED_IN, gettext("First allow your tasks to run unattended."))


def change_settings(*, user: User, **changes: object) -> AutonomySettings:
    """Change what the company allows; owners only. Raises `SilasError`: autonomy_settings."""
    require_role(user, (Role.OWNER,))
    return put_settings(actor=user.actor, **changes)


def put_settings(*, actor: str, **changes: object) -> AutonomySettings:
    row = _locked_settings()
    for name, value in changes.items():
        setattr(row, name, _validated(name, value))
    row.save(update_fields=sorted(changes) or None)
    record(AuditEvent.AUTONOMY_CHANGED, actor=actor, data={"changed": sorted(changes), "enabled": row.enabled})
    if row.enabled:
        enqueue_admission()
        automations_enabled()
    return row


def _locked_settings() -> AutonomySettings:
    row: AutonomySettings | None = AutonomySettings.objects.select_for_update(no_key=True).first()
    if row is not None:
        return row
    try:
        # A savepoint, so that losing the race to create the row does not end the caller's transaction.
        with transaction.atomic():
            created: AutonomySettings = AutonomySettings.objects.create()
            return created
    except IntegrityError:
        return _locked_settings()


def _validated(name: str, value: object) -> object:
    if name == "enabled" and isinstance(value, bool):
        return value
    if name == "egress" and value in Egress.values:
        return value
    if name == "limits":
        try:
            return TaskLimits.model_validate(value).model_dump(mode="json", exclude_none=True)
        except ValidationError:
            raise _invalid(name) from None
    low, high = _BOUNDS.get(name, (1, 0))
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise _invalid(name)
    return value


def _invalid(name: str) -> SilasError:
    low, high = _BOUNDS.get(name, (None, None))
    bounds = f" Enter a value between {low} and {high}." if low is not None else ""
    return SilasError(
        ErrorCode.AUTONOMY_SETTINGS,
        gettext("{name} can't be set to this.{bounds}").format(name=name, bounds=bounds),
    )
