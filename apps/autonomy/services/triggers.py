"""Create, change and delete the triggers of a task."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from uuid import UUID

from django.db.models.functions import Now
from pydantic import BaseModel

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.autonomy import queries, rules
from apps.autonomy.enums import TriggerKind
from apps.autonomy.locks import lock_task, lock_trigger
from apps.autonomy.models import Trigger
from apps.autonomy.schemas import MOST_USD, ChainSpec, GoalCheckSpec, WatchSpec
from apps.autonomy.services.consent import MAY_SET_UP, require_opt_in, require_task_control
from apps.autonomy.services.trigger_schedule import first_due, schedule_trigger
from apps.knowledge.models import Collection
from apps.tenants.models import User
from apps.tenants.queries import require_role
from apps.work.models import WorkItem
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext


def add_trigger(
    task_id: UUID, *, user: User, kind: TriggerKind, spec: Mapping[str, object], cap_usd: Decimal | None = None
) -> Trigger:
    """Raises `SilasError` 422: trigger_kind, trigger_spec, trigger_cap, trigger_loop, bad_schedule, and trigger_twice
    for what the task has already; 403 task_of_another; `NotFound` for a foreign task, collection or goal."""
    require_role(user, MAY_SET_UP)
    require_opt_in(user)
    trigger = Trigger(task=lock_task(task_id), kind=kind)
    require_task_control(trigger.task, user)
    _set_spec(trigger, spec, cap_usd)
    same = Trigger.objects.filter(task=trigger.task, kind=kind, spec=trigger.spec, deleted_at=None)
    if same.exists():
        raise SilasError(ErrorCode.TRIGGER_TWICE)
    trigger.save()
    _schedule_and_record(trigger, user)
    return trigger


def change_trigger(
    trigger_id: UUID,
    *,
    user: User,
    spec: Mapping[str, object] | None = None,
    enabled: bool | None = None,
    cap_usd: Decimal | None = None,
    keep_cap: bool = True,
) -> Trigger:
    """Change what is not None; with `keep_cap` False, `cap_usd` is taken even if None. Raises as `add_trigger`.

    Disabling needs no opt-in and no control over the task: members who may set up tasks may stop any of them.
    """
    require_role(user, MAY_SET_UP)
    trigger = lock_trigger(trigger_id)
    if enabled is not False or spec is not None:
        require_opt_in(user)
        require_task_control(trigger.task, user)
    if spec is not None or cap_usd is not None or not keep_cap:
        cap = trigger.cap_usd if cap_usd is None and keep_cap else cap_usd
        _set_spec(trigger, trigger.spec if spec is None else spec, cap)
    if enabled is not None:
        trigger.enabled, trigger.disabled_reason = enabled, "" if enabled else "by_hand"
        trigger.next_at = first_due(trigger) if enabled else None
    trigger.save()
    _schedule_and_record(trigger, user)
    return trigger


def delete_trigger(trigger_id: UUID, *, user: User) -> None:
    require_role(user, MAY_SET_UP)
    trigger = lock_trigger(trigger_id)
    Trigger.objects.filter(pk=trigger.pk).update(deleted_at=Now(), next_at=None)
    record(AuditEvent.TRIGGER_DELETED, actor=user.actor, subject=f"trigger:{trigger.pk}")


def _set_spec(trigger: Trigger, given: Mapping[str, object], cap_usd: Decimal | None) -> None:
    spec = rules.parse_spec(TriggerKind(trigger.kind), given)
    if cap_usd is not None and not 0 <= cap_usd <= MOST_USD:
        raise SilasError(
            ErrorCode.TRIGGER_CAP,
            gettext("Enter a cap between 0 and {most_usd} dollars.").format(most_usd=MOST_USD),
        )
    _require_exists(trigger, spec)
    trigger.spec, trigger.topic = spec.model_dump(mode="json"), rules.topic_for(spec)
    trigger.cap_usd, trigger.next_at = cap_usd, None
    trigger.next_at = first_due(trigger)


def _require_exists(trigger: Trigger, spec: BaseModel) -> None:
    """Require that what it waits for exists in this company."""
    match spec:
        case WatchSpec(collection=collection):
            if not Collection.objects.filter(pk=collection).exists():
                raise NotFound()
        case GoalCheckSpec(goal=goal):
            if not WorkItem.objects.filter(pk=goal, type="goal").exists():
                raise NotFound()
        case ChainSpec(after=task):
            if task == trigger.task_id:
                raise SilasError(ErrorCode.TRIGGER_LOOP)
            queries.task(task)


def _schedule_and_record(trigger: Trigger, user: User) -> None:
    schedule_trigger(trigger)
    data = {"kind": trigger.kind, "enabled": trigger.enabled, "task": str(trigger.task_id)}
    record(AuditEvent.TRIGGER_SAVED, actor=user.actor, subject=f"trigger:{trigger.pk}", data=data)
