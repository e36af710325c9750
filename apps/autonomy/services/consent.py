"""Who allowed that anything runs unattended: the company by its settings, each member for their own tasks.

Switching off stops nothing that runs: it can be halted, always and by everybody who may halt.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from pydantic import ValidationError

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.autonomy import queries
from apps.autonomy.models import AutonomySettings, MemberOptIn, Task
from apps.autonomy.schemas import TaskLimits
from apps.autonomy.services.bus_messages import enqueue_admission, schedule_suggestions
from apps.tenants.enums import Capability, Role
from apps.tenants.models import Membership
from apps.tenants.queries import require_role
from apps.tenants.rules import roles_with
from kernel.errors import SilasError

MAY_SET_UP = roles_with(Capability.DECIDE)
_BOUNDS = {
    "max_concurrent": (0, 100),
    "idle_seconds": (30, 86_400),
    "retry_base_seconds": (1, 3600),
    "retry_most_seconds": (1, 86_400),
}


def opt_in(user: Any) -> None:
    """The member allows that their tasks run unattended. Raises 403 for a stranger."""
    role = require_role(user, MAY_SET_UP)
    membership = Membership.objects.get(user_id=user.pk)
    _, is_new = MemberOptIn.objects.get_or_create(user_id=user.pk, defaults={"membership": membership})
    if is_new:
        record(AuditEvent.AUTONOMY_OPTED, actor=user.actor, data={"allowed": True, "role": role.value})


def opt_out(user: Any) -> None:
    """Nothing of theirs begins any more; what runs goes on until it ends or is halted."""
    _take_back(user.pk, actor=user.actor)


def withdraw_opt_in_without_role(user_id: UUID, role: Role, *, actor: str) -> None:
    """Who may set up no task any more has none that begins; a role that comes back brings no yes back."""
    if role not in MAY_SET_UP:
        _take_back(user_id, actor=actor)


def _take_back(user_id: UUID, *, actor: str) -> None:
    gone, _ = MemberOptIn.objects.filter(user_id=user_id).delete()
    if gone:
        record(AuditEvent.AUTONOMY_OPTED, actor=actor, data={"allowed": False})


def require_task_control(task: Task, user: Any) -> None:
    """A task runs under its member's yes: nobody but they and the owners changes what it does or when. Raises 403."""
    if require_role(user, MAY_SET_UP) is not Role.OWNER and task.owner_id != user.pk:
        raise SilasError(
            "task_of_another", "This task runs in somebody else's name: only they or an owner change it.", status=403
        )


def require_opt_in(user: Any) -> None:
    """Who has not allowed that tasks of theirs run starts, sets up and deletes no task. Raises 403."""
    if not queries.has_opted_in(user.pk):
        raise SilasError("not_opted_in", "First allow that tasks of yours run unattended.", status=403)


def change_settings(*, user: Any, **changes: Any) -> AutonomySettings:
    """What the company allows, from now on; owners only. Raises `SilasError`: autonomy_settings."""
    require_role(user, (Role.OWNER,))
    return put_settings(actor=user.actor, **changes)


def put_settings(*, actor: str, **changes: Any) -> AutonomySettings:
    row = _settings()
    for name, value in changes.items():
        setattr(row, name, _checked(name, value))
    row.save(update_fields=sorted(changes) or None)
    record(AuditEvent.AUTONOMY_CHANGED, actor=actor, data={"changed": sorted(changes), "enabled": row.enabled})
    if row.enabled:
        enqueue_admission()
        schedule_suggestions()
    return row


def _settings() -> AutonomySettings:
    found: AutonomySettings | None = AutonomySettings.objects.select_for_update(no_key=True).first()
    if found is not None:
        return found
    try:
        with transaction.atomic():
            row: AutonomySettings = AutonomySettings.objects.create()
            return row
    except IntegrityError:
        return _settings()


def _checked(name: str, value: Any) -> Any:
    if name == "enabled" and isinstance(value, bool):
        return value
    if name == "limits":
        try:
            return TaskLimits.model_validate(value).model_dump(mode="json", exclude_none=True)
        except ValidationError:
            raise _refused(name) from None
    low, high = _BOUNDS.get(name, (1, 0))
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise _refused(name)
    return value


def _refused(name: str) -> SilasError:
    low, high = _BOUNDS.get(name, (None, None))
    between = f" It lies between {low} and {high}." if low is not None else ""
    return SilasError("autonomy_settings", f"{name} cannot be set to this.{between}", status=422)
