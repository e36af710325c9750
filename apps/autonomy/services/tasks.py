"""Create, change and delete tasks, and release a task that was quarantined after too many failures.

A task is validated here, so that it does not fail at run time. For owners and approvers who have opted in.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from pydantic import ValidationError

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.autonomy import queries, rules
from apps.autonomy.enums import BuiltinWorkflow
from apps.autonomy.locks import lock_task
from apps.autonomy.models import Task, Trigger
from apps.autonomy.schemas import DEFAULT_LIMITS, ROUTE, ChainNext, TaskLimits
from apps.autonomy.services.consent import MAY_SET_UP, require_opt_in, require_task_control
from apps.autonomy.services.session_control import stop_all
from apps.autonomy.services.session_run import INTERNAL_TOOLS
from apps.autonomy.services.trigger_schedule import first_due, schedule_trigger
from apps.skills import queries as skills_of
from apps.tenants.models import Deployment, User
from apps.tenants.queries import require_role
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext
from llm.models import is_known

_LONGEST_PROMPT = 8000
_LONGEST_CHAIN = 20
_MOST_DELEGATES = 10


def save_task(
    task_id: UUID | None,
    *,
    user: User,
    name: str,
    deployment_id: UUID,
    playbook: str = "",
    prompt: str = "",
    skills: Collection[str] = (),
    tool_allow: Collection[str] | None = None,
    tool_deny: Collection[str] = (),
    model_name: str = "",
    lane: str = "",
    priority: int = 5,
    critical: bool = False,
    route: Mapping[str, object] | None = None,
    limits: Mapping[str, object] | None = None,
    max_attempts: int = 3,
    escalates_to_id: UUID | None = None,
    delegates_to: Collection[UUID] | None = None,
) -> Task:
    """Create a task of this member, or replace all fields of an existing one; running sessions keep their version.

    Raises `SilasError` 422: task_name, task_says_nothing, task_limits, task_route, task_loop, task_skills, task_model,
    task_bounds, task_delegates, task_tools; 403 not_opted_in, task_of_another; `NotFound` for foreign ids.
    """
    require_role(user, MAY_SET_UP)
    require_opt_in(user)
    task = Task(owner_id=user.pk) if task_id is None else lock_task(task_id)
    require_task_control(task, user)
    if not Deployment.objects.filter(pk=deployment_id).exists():
        raise NotFound()
    if escalates_to_id is not None:
        _require_capable(task, queries.task(escalates_to_id))
    task.name, task.prompt, task.playbook = name.strip()[:120], prompt.strip(), playbook
    task.deployment_id, task.escalates_to_id = deployment_id, escalates_to_id
    task.tool_allow = None if tool_allow is None else sorted(tool_allow)
    task.tool_deny, task.model_name, task.lane = sorted(tool_deny), model_name.strip(), lane.strip()[:60]
    task.priority, task.critical, task.max_attempts = priority, critical, max_attempts
    _check_fields(task)
    _set_delegates(task, delegates_to)
    task.skills = _pinned(skills)
    _check_tools(task)
    task.limits = _limits(limits or {})
    task.route = _route(task, route or {"kind": "silent"})
    _write(task)
    data = {"priority": task.priority, "route": task.route["kind"], "playbook": task.playbook or "none"}
    record(AuditEvent.TASK_SAVED, actor=user.actor, subject=f"task:{task.pk}", data=data)
    return task


def delete_task(task_id: UUID, *, user: User) -> Task:
    """Delete a task and stop its sessions; its results stay. Raises 403 not_opted_in."""
    require_role(user, MAY_SET_UP)
    require_opt_in(user)
    task = lock_task(task_id)
    Task.objects.filter(pk=task.pk).update(deleted_at=Now())
    Trigger.objects.filter(task=task, deleted_at=None).update(deleted_at=Now(), next_at=None)
    record(AuditEvent.TASK_DELETED, actor=user.actor, subject=f"task:{task.pk}")
    stop_all(task, actor=user.actor)
    return task


def release_task(task_id: UUID, *, user: User) -> Task:
    """Let a quarantined task run again, with its triggers due as before. Raises 403 not_opted_in."""
    require_role(user, MAY_SET_UP)
    require_opt_in(user)
    task = lock_task(task_id)
    if task.quarantined_at is None:
        raise SilasError(ErrorCode.NOT_QUARANTINED)
    task.quarantined_at, task.quarantine_reason = None, ""
    task.save(update_fields=["quarantined_at", "quarantine_reason"])
    for trigger in Trigger.objects.filter(task=task, deleted_at=None, enabled=True):
        trigger.next_at = first_due(trigger)
        trigger.save(update_fields=["next_at"])
        schedule_trigger(trigger)
    record(AuditEvent.TASK_RELEASED, actor=user.actor, subject=f"task:{task.pk}")
    return task


def _require_capable(task: Task, capable: Task) -> None:
    """Escalation is one level deep: a task to which others escalate cannot escalate itself."""
    if capable.pk == task.pk or capable.escalates_to_id is not None:
        raise SilasError(ErrorCode.TASK_LOOP, gettext("Choose a task that doesn't escalate itself."))
    if Task.objects.filter(escalates_to_id=task.pk, deleted_at=None).exists():
        raise SilasError(ErrorCode.TASK_LOOP, gettext("Other tasks escalate to this one, so it can't escalate itself."))


def _set_delegates(task: Task, delegates: Collection[UUID] | None) -> None:
    """Set the tasks to which its planner may delegate; None keeps them. Delegation is one level deep."""
    if delegates is not None:
        task.delegates_to = sorted({str(task_id) for task_id in delegates})
    if len(task.delegates_to) > _MOST_DELEGATES or (task.delegates_to and (task.playbook or task.escalates_to_id)):
        raise SilasError(
            ErrorCode.TASK_DELEGATES, gettext("Only a task with a prompt can delegate, to at most ten tasks.")
        )
    # A list that stays as it was is not checked again: its tasks may have changed since.
    if delegates is not None and not all(
        rules.may_delegate_to(task, queries.task(UUID(task_id))) for task_id in task.delegates_to
    ):
        message = gettext(
            "Choose tasks of the same member and chatbot that have a prompt and don't delegate themselves."
        )
        raise SilasError(ErrorCode.TASK_DELEGATES, message)


def _check_fields(task: Task) -> None:
    if not task.name:
        raise SilasError(ErrorCode.TASK_NAME, gettext("A task needs a name."))
    if task.playbook not in BuiltinWorkflow.values or not (task.playbook or task.prompt):
        raise SilasError(ErrorCode.TASK_SAYS_NOTHING, gettext("Enter a prompt, or choose a built-in workflow."))
    if len(task.prompt) > _LONGEST_PROMPT:
        raise SilasError(
            ErrorCode.TASK_SAYS_NOTHING,
            gettext("Enter a prompt of at most {longest_prompt} characters.").format(longest_prompt=_LONGEST_PROMPT),
        )
    if not 0 <= task.priority <= 9 or not 1 <= task.max_attempts <= 10:
        raise SilasError(ErrorCode.TASK_BOUNDS)
    if task.model_name and not is_known(task.model_name):
        raise SilasError(ErrorCode.TASK_MODEL)


def _pinned(skills: Collection[str]) -> list[str]:
    """Pin skills to their content, so that what runs is what was reviewed."""
    try:
        return list(skills_of.pin(skills))
    except SilasError as missing:
        raise SilasError(ErrorCode.TASK_SKILLS, missing.message) from None


def _check_tools(task: Task) -> None:
    """Refuse unknown tool names, which would silently grant or deny nothing.

    Known are the tools of its skills and of its delegates' skills, and the built-in steps. Unchanged lists are not
    checked again.
    """
    stored = Task.objects.filter(pk=task.pk).values("tool_allow", "tool_deny", "skills", "delegates_to").first()
    if stored == {name: getattr(task, name) for name in ("tool_allow", "tool_deny", "skills", "delegates_to")}:
        return
    named = {*(task.tool_allow or ()), *task.tool_deny}
    delegates = Task.objects.filter(pk__in=task.delegates_to).values_list("skills", flat=True)
    refs = {*task.skills, *(ref for delegate_skills in delegates for ref in delegate_skills)}
    installed = {tool.name for tool in skills_of.tools_in_use(refs)}
    if unknown := sorted(named - INTERNAL_TOOLS - {rules.KNOWLEDGE, rules.WEB} - installed):
        message = gettext("No tool of this task is called {listed}.").format(listed=", ".join(unknown))
        raise SilasError(ErrorCode.TASK_TOOLS, message, extra={"tools": unknown})


def _limits(given: Mapping[str, object]) -> dict[str, object]:
    """Missing limits are the defaults; 0 is a limit."""
    try:
        limits = TaskLimits.model_validate({**DEFAULT_LIMITS.model_dump(), **given})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        problem = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise SilasError(ErrorCode.TASK_LIMITS, problem) from None
    return limits.model_dump(mode="json", exclude_none=True)


def _route(task: Task, given: Mapping[str, object]) -> dict[str, object]:
    try:
        route = ROUTE.validate_python(given)
    except ValidationError:
        raise SilasError(ErrorCode.TASK_ROUTE) from None
    if isinstance(route, ChainNext):
        _require_end(task, route.task)
    return route.model_dump(mode="json")


def _require_end(task: Task, following: UUID) -> None:
    """Refuse a chain that leads back to this task. Later changes of other tasks are bounded by the depth limit."""
    for _ in range(_LONGEST_CHAIN):
        if following == task.pk:
            raise SilasError(
                ErrorCode.TASK_LOOP, gettext("A task can't start itself, directly or through other tasks.")
            )
        route = queries.task(following).result_route
        if not isinstance(route, ChainNext):
            return
        following = route.task
    raise SilasError(ErrorCode.TASK_LOOP, gettext("This chain of tasks is too long."))


def _write(task: Task) -> None:
    try:
        # A savepoint: the caller's transaction must survive a name that is taken.
        with transaction.atomic():
            task.save()
    except IntegrityError:
        raise SilasError(ErrorCode.TASK_NAME, gettext("A task with this name already exists.")) from None
