"""Tasks over HTTP: set up, look at, change, run, try again, delete, and when they run."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.autonomy import overview, queries, services
from apps.autonomy.api.callers import acting_user, answer, require_switched_on, spawn_error, validated, validated_query
from apps.autonomy.api.shapes import (
    BEGINS,
    REFUSALS,
    WRONG,
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
from apps.autonomy.locks import lock_task
from apps.autonomy.models import Task
from apps.autonomy.overview import TaskOverview
from apps.autonomy.schemas import Spawn, Spawned
from apps.tenants.api_auth import MembersView
from kernel.tenancy import tenant_scope

_RENAMED = {"model": "model_name", "deployment": "deployment_id", "escalates_to": "escalates_to_id"}


class Tasks(MembersView):
    """All tasks, newest first, and new ones."""

    @extend_schema(
        operation_id="tasks_list",
        tags=["tasks"],
        parameters=[TasksRequest],
        responses={200: TaskAnswer(many=True), **REFUSALS, 400: WRONG[400]},
    )
    def get(self, request: Request) -> Response:
        asked = validated_query(request, TasksRequest)
        with tenant_scope(self.caller.tenant_id):
            tasks = sorted(queries.tasks(), key=lambda task: (task.created_at, task.pk), reverse=True)
            found = [_told(glance) for glance in overview.task_overviews(tasks)]
        wanted = asked.get("status")
        shown = [one for one in found if wanted in (None, one["status"])]
        return answer(shown[asked["offset"] : asked["offset"] + asked["limit"]])

    @extend_schema(
        operation_id="tasks_create",
        tags=["tasks"],
        request=NewTask,
        responses={201: TaskAnswer, **REFUSALS, **WRONG},
    )
    def post(self, request: Request) -> Response:
        asked = validated(NewTask, request.data)
        triggers = asked.pop("triggers", [])
        with tenant_scope(self.caller.tenant_id):
            user = acting_user(self.caller)
            task = services.save_task(None, user=user, **_renamed(asked))
            for each in triggers:
                services.add_trigger(task.pk, user=user, **_trigger(each))
            return answer(_whole(task.pk), status.HTTP_201_CREATED)


class TaskDetail(MembersView):
    """One task: look at it, change what is said, delete it (its sessions stay)."""

    @extend_schema(operation_id="tasks_read", tags=["tasks"], responses={200: TaskAnswer, **REFUSALS})
    def get(self, request: Request, task_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return answer(_whole(task_id))

    @extend_schema(
        operation_id="tasks_change",
        tags=["tasks"],
        request=TaskChange,
        responses={200: TaskAnswer, **REFUSALS, **WRONG},
    )
    def patch(self, request: Request, task_id: UUID) -> Response:
        asked = validated(TaskChange, request.data)
        with tenant_scope(self.caller.tenant_id):
            user, task = acting_user(self.caller), lock_task(task_id)
            services.save_task(task_id, user=user, **{**_as_it_is(task), **_renamed(asked)})
            return answer(_whole(task_id))

    @extend_schema(operation_id="tasks_delete", tags=["tasks"], responses={204: None, **REFUSALS})
    def delete(self, request: Request, task_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            services.delete_task(task_id, user=acting_user(self.caller))
        return Response(status=status.HTTP_204_NO_CONTENT)


class RunNow(MembersView):
    """Begin a session by hand."""

    @extend_schema(
        operation_id="tasks_run_now",
        tags=["tasks"],
        request=RunRequest,
        responses={201: SessionAnswer, **REFUSALS, **WRONG, **BEGINS},
    )
    def post(self, request: Request, task_id: UUID) -> Response:
        cap = validated(RunRequest, request.data).get("cap_usd")
        with tenant_scope(self.caller.tenant_id):
            task, user = queries.task(task_id), acting_user(self.caller)
            require_switched_on()
            spawn = services.run_now(task.pk, user=user, cap_usd=cap)
        return spawn_response(self, spawn)


class Retry(MembersView):
    """Let a task that was set aside run again, and begin it (spec 003: retry a dead-lettered task)."""

    @extend_schema(
        operation_id="tasks_retry",
        tags=["tasks"],
        request=None,
        responses={201: SessionAnswer, **REFUSALS, **BEGINS},
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

    @extend_schema(
        operation_id="tasks_runs",
        tags=["tasks"],
        parameters=[PageRequest],
        responses={200: SessionAnswer(many=True), **REFUSALS, 400: WRONG[400]},
    )
    def get(self, request: Request, task_id: UUID) -> Response:
        asked = validated_query(request, PageRequest)
        with tenant_scope(self.caller.tenant_id):
            queries.task(task_id)
            rows = queries.sessions(task_id=task_id, **asked)
            return answer([SessionAnswer(row).data for row in rows])


class Triggers(MembersView):
    """When a task runs."""

    @extend_schema(
        operation_id="tasks_triggers_list", tags=["tasks"], responses={200: TriggerAnswer(many=True), **REFUSALS}
    )
    def get(self, request: Request, task_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            queries.task(task_id)
            return answer([TriggerAnswer(row).data for row in queries.triggers_of(task_id)])

    @extend_schema(
        operation_id="tasks_triggers_create",
        tags=["tasks"],
        request=TriggerRequest,
        responses={201: TriggerAnswer, **REFUSALS, **WRONG},
    )
    def post(self, request: Request, task_id: UUID) -> Response:
        asked = validated(TriggerRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            made = services.add_trigger(task_id, user=acting_user(self.caller), **_trigger(asked))
            return answer(TriggerAnswer(made).data, status.HTTP_201_CREATED)


class TriggerDetail(MembersView):
    """Change, switch on or off, or remove one time at which a task runs."""

    @extend_schema(
        operation_id="tasks_triggers_change",
        tags=["tasks"],
        request=TriggerChange,
        responses={200: TriggerAnswer, **REFUSALS, **WRONG},
    )
    def patch(self, request: Request, task_id: UUID, trigger_id: UUID) -> Response:
        asked = validated(TriggerChange, request.data)
        with tenant_scope(self.caller.tenant_id):
            overview.trigger(trigger_id, task_id=task_id)
            keep = "cap_usd" not in asked
            changed = services.change_trigger(trigger_id, user=acting_user(self.caller), keep_cap=keep, **asked)
            return answer(TriggerAnswer(changed).data)

    @extend_schema(operation_id="tasks_triggers_delete", tags=["tasks"], responses={204: None, **REFUSALS})
    def delete(self, request: Request, task_id: UUID, trigger_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            overview.trigger(trigger_id, task_id=task_id)
            services.delete_trigger(trigger_id, user=acting_user(self.caller))
        return Response(status=status.HTTP_204_NO_CONTENT)


def spawn_response(view: MembersView, spawn: Spawn) -> Response:
    """The session that was queued. Outside of the scope, so that a refusal keeps what was written down about it."""
    refusal = spawn_error(spawn)
    if refusal is not None or not isinstance(spawn, Spawned):
        raise refusal or AssertionError
    with tenant_scope(view.caller.tenant_id):
        return answer(SessionAnswer(queries.session(spawn.session_id)).data, status.HTTP_201_CREATED)


def _whole(task_id: UUID) -> dict[str, Any]:
    (glance,) = overview.task_overviews([queries.task(task_id)])
    return _told(glance)


def _told(glance: TaskOverview) -> dict[str, Any]:
    return dict(TaskAnswer({**vars(glance), "next_at": glance.next_at, "status": _status(glance)}).data)


def _status(glance: TaskOverview) -> str:
    """In the words of specification 003; done and failed are of a session, not of a task."""
    if glance.task.quarantined_at is not None:
        return "dead_letter"
    if glance.last is not None and glance.last.status not in FINAL:
        return "running"
    return "scheduled" if glance.next_at is not None else "pending"


def _renamed(asked: dict[str, Any]) -> dict[str, Any]:
    return {_RENAMED.get(name, name): value for name, value in asked.items()}


def _trigger(asked: dict[str, Any]) -> dict[str, Any]:
    return {"kind": TriggerKind(asked["kind"]), "spec": asked["spec"], "cap_usd": asked.get("cap_usd")}


def _as_it_is(task: Task) -> dict[str, Any]:
    same = ("name", "deployment_id", "playbook", "prompt", "skills", "tool_allow", "tool_deny", "model_name", "lane")
    more = ("priority", "critical", "route", "limits", "max_attempts", "escalates_to_id")
    return {name: getattr(task, name) for name in (*same, *more)}
