"""API views of tasks and their triggers."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.autonomy import overview, queries, services
from apps.autonomy.api.requests import acting_user, require_switched_on, spawn_error
from apps.autonomy.api.serializers import (
    INVALID,
    REFUSALS,
    START_REFUSALS,
    NewTask,
    PageRequest,
    RunRequest,
    SessionAnswer,
    TaskAnswer,
    TaskChange,
    TasksRequest,
    TriggerAnswer,
    TriggerChange,
    TriggerRequest,
)
from apps.autonomy.enums import FINAL, TriggerKind
from apps.autonomy.gallery import TEMPLATES
from apps.autonomy.locks import lock_task
from apps.autonomy.models import Task
from apps.autonomy.overview import TaskOverview
from apps.autonomy.schemas import Spawn, Spawned
from apps.tenants.api_auth import MembersView, uncached, validated
from apps.tenants.enums import KeyScope
from kernel.tenancy import tenant_scope

_RENAMED = {"model": "model_name", "deployment": "deployment_id", "escalates_to": "escalates_to_id"}


class Tasks(MembersView):
    """List tasks, newest first; create one."""

    reading, writing = KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE

    @extend_schema(
        operation_id="tasks_list",
        tags=["tasks"],
        parameters=[TasksRequest],
        responses={200: TaskAnswer(many=True), **REFUSALS, 400: INVALID[400]},
    )
    def get(self, request: Request) -> Response:
        query = validated(TasksRequest, request.query_params)
        with tenant_scope(self.caller.tenant_id):
            tasks = sorted(queries.tasks(), key=lambda task: (task.created_at, task.pk), reverse=True)
            rows = [_overview_data(task) for task in overview.task_overviews(tasks)]
        status_filter = query.get("status")
        rows = [row for row in rows if status_filter in (None, row["status"])]
        return uncached(rows[query["offset"] : query["offset"] + query["limit"]])

    @extend_schema(
        operation_id="tasks_create",
        tags=["tasks"],
        request=NewTask,
        responses={201: TaskAnswer, **REFUSALS, **INVALID},
    )
    def post(self, request: Request) -> Response:
        data = validated(NewTask, request.data)
        triggers = data.pop("triggers", [])
        with tenant_scope(self.caller.tenant_id):
            user = acting_user(self.caller)
            task = services.save_task(None, user=user, **_model_fields(data))
            for trigger in triggers:
                services.add_trigger(task.pk, user=user, **_trigger_fields(trigger))
            return uncached(_task_data(task.pk), status.HTTP_201_CREATED)


class TaskTemplateAnswer(serializers.Serializer[Any]):
    playbook = serializers.CharField(source="key", help_text="The `playbook` of a task made from it")
    title = serializers.CharField()
    description = serializers.CharField()
    reads = serializers.CharField(help_text="What it may read")
    writes = serializers.CharField(help_text="What it leaves")
    schedule = serializers.CharField(help_text="As cron")
    needs_model = serializers.BooleanField()


class TaskTemplates(MembersView):
    reading, writing = KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE

    @extend_schema(
        operation_id="task_templates_list", tags=["tasks"], responses={200: TaskTemplateAnswer(many=True), **REFUSALS}
    )
    def get(self, request: Request) -> Response:
        """List the ready automations of the gallery."""
        return uncached(TaskTemplateAnswer(TEMPLATES, many=True).data)


class TaskDetail(MembersView):
    """Read, change or delete one task; its sessions stay."""

    reading, writing = KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE

    @extend_schema(operation_id="tasks_read", tags=["tasks"], responses={200: TaskAnswer, **REFUSALS})
    def get(self, request: Request, task_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return uncached(_task_data(task_id))

    @extend_schema(
        operation_id="tasks_change",
        tags=["tasks"],
        request=TaskChange,
        responses={200: TaskAnswer, **REFUSALS, **INVALID},
    )
    def patch(self, request: Request, task_id: UUID) -> Response:
        data = validated(TaskChange, request.data)
        with tenant_scope(self.caller.tenant_id):
            user, task = acting_user(self.caller), lock_task(task_id)
            services.save_task(task_id, user=user, **{**_current_fields(task), **_model_fields(data)})
            return uncached(_task_data(task_id))

    @extend_schema(operation_id="tasks_delete", tags=["tasks"], responses={204: None, **REFUSALS})
    def delete(self, request: Request, task_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            services.delete_task(task_id, user=acting_user(self.caller))
        return Response(status=status.HTTP_204_NO_CONTENT)


class RunNow(MembersView):
    """Start a session manually."""

    reading, writing = KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE
    recognises_repeats = True

    @extend_schema(
        operation_id="tasks_run_now",
        tags=["tasks"],
        request=RunRequest,
        responses={201: SessionAnswer, **REFUSALS, **INVALID, **START_REFUSALS},
    )
    def post(self, request: Request, task_id: UUID) -> Response:
        cap = validated(RunRequest, request.data).get("cap_usd")
        with tenant_scope(self.caller.tenant_id):
            task, user = queries.task(task_id), acting_user(self.caller)
            require_switched_on()
            spawn = services.run_now(task.pk, user=user, cap_usd=cap, once=self.once)
        return spawn_response(self, spawn)


class Retry(MembersView):
    """Release a quarantined task and start it (spec 003: retry a dead-lettered task)."""

    reading, writing = KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE

    @extend_schema(
        operation_id="tasks_retry",
        tags=["tasks"],
        request=None,
        responses={201: SessionAnswer, **REFUSALS, **START_REFUSALS},
    )
    def post(self, request: Request, task_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            task, user = queries.task(task_id), acting_user(self.caller)
            require_switched_on()
            services.release_task(task.pk, user=user)
            spawn = services.run_now(task.pk, user=user)
        return spawn_response(self, spawn)


class Runs(MembersView):
    """The sessions of one task, newest first."""

    reading, writing = KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE

    @extend_schema(
        operation_id="tasks_runs",
        tags=["tasks"],
        parameters=[PageRequest],
        responses={200: SessionAnswer(many=True), **REFUSALS, 400: INVALID[400]},
    )
    def get(self, request: Request, task_id: UUID) -> Response:
        page = validated(PageRequest, request.query_params)
        with tenant_scope(self.caller.tenant_id):
            queries.task(task_id)
            rows = queries.sessions(task_id=task_id, **page)
            return uncached([SessionAnswer(row).data for row in rows])


class Triggers(MembersView):
    """List or add the triggers of a task."""

    reading, writing = KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE

    @extend_schema(
        operation_id="tasks_triggers_list", tags=["tasks"], responses={200: TriggerAnswer(many=True), **REFUSALS}
    )
    def get(self, request: Request, task_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            queries.task(task_id)
            return uncached([TriggerAnswer(row).data for row in queries.triggers_of(task_id)])

    @extend_schema(
        operation_id="tasks_triggers_create",
        tags=["tasks"],
        request=TriggerRequest,
        responses={201: TriggerAnswer, **REFUSALS, **INVALID},
    )
    def post(self, request: Request, task_id: UUID) -> Response:
        data = validated(TriggerRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            trigger = services.add_trigger(task_id, user=acting_user(self.caller), **_trigger_fields(data))
            return uncached(TriggerAnswer(trigger).data, status.HTTP_201_CREATED)


class TriggerDetail(MembersView):
    """Change, enable, disable or delete a trigger."""

    reading, writing = KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE

    @extend_schema(
        operation_id="tasks_triggers_change",
        tags=["tasks"],
        request=TriggerChange,
        responses={200: TriggerAnswer, **REFUSALS, **INVALID},
    )
    def patch(self, request: Request, task_id: UUID, trigger_id: UUID) -> Response:
        data = validated(TriggerChange, request.data)
        with tenant_scope(self.caller.tenant_id):
            overview.trigger(trigger_id, task_id=task_id)
            keep_cap = "cap_usd" not in data
            trigger = services.change_trigger(trigger_id, user=acting_user(self.caller), keep_cap=keep_cap, **data)
            return uncached(TriggerAnswer(trigger).data)

    @extend_schema(operation_id="tasks_triggers_delete", tags=["tasks"], responses={204: None, **REFUSALS})
    def delete(self, request: Request, task_id: UUID, trigger_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            overview.trigger(trigger_id, task_id=task_id)
            services.delete_trigger(trigger_id, user=acting_user(self.caller))
        return Response(status=status.HTTP_204_NO_CONTENT)


def spawn_response(view: MembersView, spawn: Spawn) -> Response:
    """The queued session. Called outside of the scope, so that a refusal does not roll back its record."""
    refusal = spawn_error(spawn)
    if refusal is not None or not isinstance(spawn, Spawned):
        raise refusal or AssertionError
    with tenant_scope(view.caller.tenant_id):
        return uncached(SessionAnswer(queries.session(spawn.session_id)).data, status.HTTP_201_CREATED)


def _task_data(task_id: UUID) -> dict[str, Any]:
    (task,) = overview.task_overviews([queries.task(task_id)])
    return _overview_data(task)


def _overview_data(task: TaskOverview) -> dict[str, Any]:
    return dict(TaskAnswer({**vars(task), "next_at": task.next_at, "status": _status(task)}).data)


def _status(row: TaskOverview) -> str:
    """The status as spec 003 names it; done and failed belong to sessions, not tasks."""
    if row.task.quarantined_at is not None:
        return "dead_letter"
    if row.last is not None and row.last.status not in FINAL:
        return "running"
    return "scheduled" if row.next_at is not None else "pending"


def _model_fields(data: dict[str, Any]) -> dict[str, Any]:
    return {_RENAMED.get(name, name): value for name, value in data.items()}


def _trigger_fields(data: dict[str, Any]) -> dict[str, Any]:
    return {"kind": TriggerKind(data["kind"]), "spec": data["spec"], "cap_usd": data.get("cap_usd")}


def _current_fields(task: Task) -> dict[str, Any]:
    same = ("name", "deployment_id", "playbook", "prompt", "skills", "tool_allow", "tool_deny", "model_name", "lane")
    more = ("priority", "critical", "route", "limits", "max_attempts", "escalates_to_id")
    return {name: getattr(task, name) for name in (*same, *more)}
