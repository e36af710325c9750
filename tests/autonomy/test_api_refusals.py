"""The API names unknown fields that it refuses; a member who has not opted in can't start or delete tasks."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from apps.autonomy import services
from apps.autonomy.enums import SessionStatus, TriggerKind
from apps.autonomy.models import Task
from apps.autonomy.services import admission, session_run
from apps.bus.deliveries import Delivery
from apps.bus.enums import Queue
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope
from tests.autonomy.test_api import BUDGETS, HOOKS, TASKS, Api, new
from tests.autonomy.test_api import api as api
from tests.console.runs import said
from tests.factories.autonomy import House, make_house
from tests.factories.bus import lease_any
from tests.factories.console import browser
from tests.factories.tenants import make_member

INTERVAL = {"kind": "interval", "spec": {"seconds": 60}}
URL = "https://hooks.example.com/silas"


def refused_fields(answer: Any) -> list[str]:
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "invalid"
    return sorted(answer.json()["error"]["extra"]["fields"])


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("post", TASKS, {"name": "N", "prompt": "P", "tool_denny": ["a"]}),
        ("patch", TASKS + "/{task}", {"tool_denny": ["a"]}),
        ("post", TASKS + "/{task}/run-now", {"tool_denny": 1}),
        ("post", TASKS + "/{task}/triggers", {**INTERVAL, "tool_denny": 1}),
        ("patch", TASKS + "/{task}/triggers/{trigger}", {"tool_denny": 1}),
        ("post", HOOKS, {"url": URL, "tool_denny": 1}),
        ("post", BUDGETS, {"period": "day", "limit_usd": "1", "tool_denny": 1}),
        ("patch", TASKS + "/settings", {"tool_denny": 1}),
    ],
)
def test_field_that_nobody_knows_is_refused_by_name(
    house: House, api: Api, method: str, path: str, body: dict[str, Any]
) -> None:
    task = house.task()
    trigger = house.trigger(task, TriggerKind.INTERVAL, seconds=3600)
    body = {**body, "deployment": str(house.deployment.pk)} if path == TASKS else body
    answer = api(method, path.format(task=task.pk, trigger=trigger.pk), body)
    assert refused_fields(answer) == ["tool_denny"]


def test_nested_field_that_nobody_knows_is_refused_by_name(house: House, api: Api) -> None:
    answer = api("post", TASKS, new(house, triggers=[{**INTERVAL, "max_cost": "1"}]))
    assert refused_fields(answer) == ["triggers"]
    assert "max_cost" in str(answer.json()["error"]["extra"]["fields"]["triggers"])
    assert house.tasks() == []


def test_question_that_nobody_knows_is_refused_by_name(api: Api) -> None:
    assert refused_fields(api("get", TASKS, stauts="running")) == ["stauts"]


@pytest.mark.parametrize("limits", [{"cost": "1"}, {"max_cost_usd": "1"}, {"call": 3}])
def test_limit_that_nobody_knows_is_refused_by_name(house: House, api: Api, limits: Any) -> None:
    answer = api("post", TASKS, new(house, limits=limits))
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "task_limits"
    assert next(iter(limits)) in answer.json()["error"]["message"]


@pytest.mark.parametrize("field", ["tool_allow", "tool_deny"])
def test_tool_that_nobody_knows_is_refused_by_name(house: House, api: Api, field: str) -> None:
    answer = api("post", TASKS, new(house, **{field: ["knowledge_search", "knowlege_search", "delete_all"]}))
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "task_tools"
    assert answer.json()["error"]["extra"] == {"tools": ["delete_all", "knowlege_search"]}
    assert "delete_all, knowlege_search" in answer.json()["error"]["message"]
    assert house.tasks() == []


@pytest.mark.parametrize("field", ["tool_allow", "tool_deny"])
def test_changed_task_refuses_a_tool_that_nobody_knows(house: House, api: Api, field: str) -> None:
    task = house.task(**{field: ["knowledge_search"]})
    answer = api("patch", f"{TASKS}/{task.pk}", {field: ["knowlege_search"]})
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "task_tools"
    with tenant_scope(house.tenant):
        assert getattr(Task.objects.get(pk=task.pk), field) == ["knowledge_search"]


def test_tool_whose_skill_was_switched_off_since_keeps_no_other_change_back(house: House, api: Api) -> None:
    task = house.task()
    house.change(task, tool_deny=["of_a_skill_that_is_gone"])
    assert api("patch", f"{TASKS}/{task.pk}", {"priority": 7}).status_code == 200


@pytest.mark.parametrize("field", ["tool_allow", "tool_deny"])
def test_console_form_says_which_tool_nobody_knows(house: House, field: str) -> None:
    page = browser(house.owner).post(reverse("console-task-new"), {**said(house), field: "knowlege_search"})
    assert "No tool of this task is called knowlege_search." in page.content.decode()
    assert house.tasks() == []


def under_way(house: House) -> Any:
    session = house.run_now(house.task())
    house.do(admission.admit_waiting)
    lease = house.do(lease_any, Queue.EXECUTOR, consumer="test")
    house.do(session_run.begin_session, Delivery(house.tenant.pk, lease, "executor:autonomous_session"))
    return house.session(session.pk)


def test_deleted_task_has_its_run_halted(house: House, api: Api) -> None:
    session = under_way(house)
    assert api("delete", f"{TASKS}/{session.task_id}").status_code == 204
    stopping = house.session(session.pk)
    assert stopping.halt_reason == "external_halt"
    assert stopping.run.halt_state == "halt_requested"


def test_deleted_task_has_what_waits_called_off(house: House, api: Api) -> None:
    session = house.run_now(house.task())
    assert api("delete", f"{TASKS}/{session.task_id}").status_code == 204
    assert house.session(session.pk).status == SessionStatus.CANCELLED


@pytest.mark.parametrize("role", ["owner", "approver"])
@pytest.mark.parametrize("step", ["run_now", "delete_task", "release_task"])
def test_member_without_opt_in_starts_and_deletes_nobodys_task(house: House, role: str, step: str) -> None:
    task, member = house.task(), make_member(house.tenant, role)
    with pytest.raises(SilasError) as refused:
        house.do(getattr(services, step), task.pk, user=member)
    assert refused.value.code == "not_opted_in"
    assert refused.value.status == 403
    assert house.sessions() == []
    assert [each.pk for each in house.tasks()] == [task.pk]


def test_member_without_opt_in_repeats_no_session(house: House) -> None:
    session = house.through(house.task())
    with pytest.raises(SilasError) as refused:
        house.do(services.retry_session, session.pk, user=make_member(house.tenant, "approver"))
    assert refused.value.code == "not_opted_in"
    assert len(house.sessions()) == 1


@pytest.mark.parametrize("role", ["viewer", "agent"])
def test_member_who_decides_nothing_starts_and_deletes_nothing(house: House, role: str) -> None:
    task, member = house.task(), make_member(house.tenant, role)
    for step in (services.run_now, services.delete_task):
        with pytest.raises(SilasError) as refused:
            house.do(step, task.pk, user=member)
        assert refused.value.status == 403


def test_stranger_and_member_of_another_company_start_and_delete_nothing(house: House, other_tenant: Any) -> None:
    task, theirs = house.task(), make_house(other_tenant)
    for step in (services.run_now, services.delete_task):
        with pytest.raises(SilasError) as refused:
            house.do(step, task.pk, user=theirs.owner)
        assert refused.value.status == 403
        with pytest.raises(NotFound):
            theirs.do(step, task.pk, user=theirs.owner)
    assert [each.pk for each in house.tasks()] == [task.pk]
