"""Creating, describing, changing and deleting automations."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.urls import reverse

from apps.audit.models import AuditEntry
from apps.autonomy import services
from apps.autonomy.enums import TriggerKind
from apps.autonomy.models import Task, Trigger
from kernel.tenancy import tenant_scope
from tests.console.runs import post, said, text
from tests.factories.autonomy import House, make_house
from tests.factories.console import browser


@pytest.fixture
def house(tenant: Any) -> House:
    return make_house(tenant)


@pytest.fixture
def other(other_tenant: Any) -> House:
    return make_house(other_tenant)


def test_another_tenants_rows_cannot_be_chosen(house: House, other: House) -> None:
    theirs = other.task(name="Theirs")
    sent = said(house, deployment=str(other.deployment.pk), route="chain_next", next_task=str(theirs.pk))
    answer = post(house.owner, "console-task-new", **sent)
    assert answer.status_code == 422
    assert house.tasks() == []


def test_task_is_set_up_with_when_it_runs(house: House) -> None:
    sent = said(house, **{"when-kind": "cron", "when-schedule": "0 2 * * *"})
    post(house.owner, "console-task-new", **sent)
    with tenant_scope(house.tenant):
        trigger = Trigger.objects.select_related("task").get()
    assert trigger.task.name == "Nightly look"
    assert trigger.spec == {"schedule": "0 2 * * *"}
    assert str(trigger.task.own_limits.cost_usd) == "0.25"


WRONG: list[dict[str, str]] = [
    {"name": ""},
    {"prompt": "", "playbook": ""},
    {"playbook": "everything"},
    {"cost_usd": "-1"},
    {"cost_usd": "NaN"},
    {"priority": "10"},
    {"route": "nowhere"},
    {"route": "chain_next"},
    {"model_name": "nobody:knows"},
    {"deployment": "x"},
    {"when-kind": "delegated"},
    {"when-kind": "cron", "when-schedule": "0 0 30 2 *"},
    {"when-kind": "cron", "when-schedule": "* * * * * *"},
    {"when-kind": "interval"},
    {"when-kind": "watch"},
    {"when-kind": "chain"},
    {"when-kind": "goal_check", "when-goal": "x"},
    {"when-kind": "manual", "when-cap_usd": "-2"},
]


def test_wrong_words_in_a_new_task_store_nothing_and_keep_the_form(house: House) -> None:
    answers = [post(house.owner, "console-task-new", **said(house, **wrong)) for wrong in WRONG]
    taken = [
        wrong
        for wrong, answer in zip(WRONG, answers, strict=True)
        if answer.status_code != 422 or 'role="alert"' not in answer.content.decode()
    ]
    with tenant_scope(house.tenant):
        stored = Task.objects.count() + AuditEntry.objects.filter(event="task_saved").count()
    assert taken == []
    assert stored == 0


def test_task_of_a_member_who_has_not_opted_in_is_refused(house: House, approver: Any) -> None:
    answer = post(approver, "console-task-new", **said(house))
    assert answer.status_code == 422
    assert house.tasks() == []


def test_preview_stores_nothing_and_shows_three_times(house: House) -> None:
    sent = said(house, **{"when-kind": "cron", "when-schedule": "0 2 * * *", "preview": "1"})
    answer = post(house.owner, "console-task-new", **sent)
    shown = answer.content.decode()
    assert answer.status_code == 200
    assert "At 02:00 every day" in shown
    assert shown.count(", 02:00<") == 3
    assert house.tasks() == []


def test_preview_is_in_the_tenants_zone_across_a_change_of_clocks(house: House, time_machine: Any) -> None:
    type(house.tenant).objects.filter(pk=house.tenant.pk).update(timezone="Europe/Berlin")
    time_machine.move_to("2026-03-28T12:00Z", tick=False)
    shown = text(house.owner, "console-when", **{"when-kind": "cron", "when-schedule": "30 2 * * *"})
    assert [
        words for words in ("Sun 29 Mar 2026, 03:00", "Mon 30 Mar 2026, 02:30", "Europe/Berlin") if words not in shown
    ] == []


def test_preview_of_what_is_no_schedule_says_so(house: House) -> None:
    wrong = ("", "never", "0 0 30 2 *", "* * * *", "<b>", "0 2 * * * *")
    shown = [text(house.owner, "console-when", **{"when-kind": "cron", "when-schedule": each}) for each in wrong]
    assert [
        each for each, page in zip(wrong, shown, strict=True) if "five cron fields" not in page or "<b><b>" in page
    ] == []


def test_preview_of_the_twenty_ninth_of_february_comes(house: House) -> None:
    shown = text(house.owner, "console-when", **{"when-kind": "cron", "when-schedule": "0 0 29 2 *"})
    assert shown.count("29 Feb") == 3


def test_task_is_changed_as_a_whole(house: House) -> None:
    task = house.task()
    post(house.owner, "console-task-edit", task.pk, **said(house, name="Otherwise", playbook="unanswered", prompt=""))
    with tenant_scope(house.tenant):
        changed = Task.objects.get(pk=task.pk)
    assert changed.name == "Otherwise"
    assert changed.playbook == "unanswered"


def test_form_of_a_task_sent_back_as_it_is_changes_nothing(house: House) -> None:
    others = [house.task(name=f"other {number}").pk for number in range(2)]
    task = house.task(
        tool_allow=["knowledge_search"], limits={"calls": 3, "memory_writes": 0}, priority=7, delegates_to=others
    )
    form = browser(house.owner).get(reverse("console-task-edit", args=[task.pk])).context["form"]
    sent = {field.html_name: field.value() for field in form if str(field.value()) not in ("None", "False", "[]")}
    post(house.owner, "console-task-edit", task.pk, **sent)
    with tenant_scope(house.tenant):
        after = Task.objects.get(pk=task.pk)
    same = ("name", "prompt", "tool_allow", "tool_deny", "own_limits", "route", "priority", "lane", "skills")
    kept = (*same, "delegates_to", "escalates_to_id")
    assert {name: getattr(after, name) for name in kept} == {name: getattr(task, name) for name in kept}


def asked_by(house: House, task: Task) -> list[str]:
    with tenant_scope(house.tenant):
        return list(Task.objects.get(pk=task.pk).delegates_to)


def test_others_that_a_task_may_ask_are_chosen_and_told(house: House) -> None:
    other = house.task(name="Look at stock")
    post(house.owner, "console-task-new", **said(house, delegates_to=str(other.pk)))
    (task,) = (each for each in house.tasks() if each.pk != other.pk)
    told = text(house.owner, "console-task", task.pk)
    assert asked_by(house, task) == [str(other.pk)]
    assert "Can delegate to" in told
    assert "Look at stock" in told


def test_others_that_are_not_chosen_any_more_are_asked_no_more(house: House) -> None:
    other = house.task(name="Look at stock")
    task = house.task(name="Nightly look", delegates_to=[other.pk])
    post(house.owner, "console-task-edit", task.pk, **said(house))
    assert asked_by(house, task) == []


def test_only_tasks_that_can_be_asked_are_offered(house: House, approver: Any) -> None:
    plain = house.task(name="plain")
    house.task(name="ready way", playbook="unanswered")
    house.task(name="asks itself", delegates_to=[plain.pk])
    house.task(name="calls for help", escalates_to_id=plain.pk)
    house.do(services.opt_in, approver)
    house.do(services.save_task, None, user=approver, name="theirs", deployment_id=house.deployment.pk, prompt="Look")
    offered = re.findall(r'name="delegates_to" value="([^"]+)"', text(house.owner, "console-task-new"))
    assert offered == [str(plain.pk)]


def test_another_tenants_task_cannot_be_asked(house: House, other: House) -> None:
    theirs = other.task(name="Theirs")
    house.task(name="plain")
    answer = post(house.owner, "console-task-new", **said(house, delegates_to=str(theirs.pk)))
    assert answer.status_code == 422
    assert len(house.tasks()) == 1


def test_builtin_workflow_that_delegates_is_refused_with_the_reason(house: House) -> None:
    plain = house.task(name="plain")
    sent = said(house, playbook="unanswered", delegates_to=str(plain.pk))
    answer = post(house.owner, "console-task-new", **sent)
    assert answer.status_code == 422
    assert "Only a task with a prompt can delegate" in answer.content.decode()


def test_task_that_can_be_asked_no_more_is_still_on_the_list_until_it_is_taken_off(house: House) -> None:
    other = house.task(name="Look at stock")
    task = house.task(name="Nightly look", delegates_to=[other.pk])
    house.task(task_id=other.pk, name="Look at stock", playbook="unanswered")
    answer = post(house.owner, "console-task-edit", task.pk, **said(house, delegates_to=str(other.pk)))
    assert answer.status_code == 422
    assert asked_by(house, task) == [str(other.pk)]


def test_trigger_is_switched_off_and_on_and_removed(house: House) -> None:
    task = house.task()
    trigger = house.trigger(task, TriggerKind.INTERVAL, seconds=3600)
    post(house.owner, "console-when-turn", trigger.pk, enabled="0")
    off = "Turn on" in text(house.owner, "console-task", task.pk)
    post(house.owner, "console-when-turn", trigger.pk, enabled="1")
    post(house.owner, "console-when-delete", trigger.pk)
    assert off is True
    assert "No triggers. It runs only when started manually." in text(house.owner, "console-task", task.pk)


def test_time_is_added_and_told_in_words(house: House) -> None:
    task = house.task()
    post(house.owner, "console-when-add", task.pk, **{"when-kind": "interval", "when-minutes": "120"})
    assert "Every 2 hours" in text(house.owner, "console-task", task.pk)


def test_time_that_is_there_already_is_not_added_again(house: House) -> None:
    """As when a button is clicked twice: otherwise every night would bring two runs."""
    task, sent = house.task(), {"when-kind": "cron", "when-schedule": "0 2 * * *"}
    answers = [post(house.owner, "console-when-add", task.pk, **sent).status_code for _ in range(2)]
    with tenant_scope(house.tenant):
        assert answers == [302, 422]
        assert Trigger.objects.count() == 1


def test_wrong_time_is_refused_beside_what_was_typed(house: House) -> None:
    task = house.task()
    answer = post(house.owner, "console-when-add", task.pk, **{"when-kind": "cron", "when-schedule": "nonsense"})
    assert answer.status_code == 422
    assert 'value="nonsense"' in answer.content.decode()


def test_deleted_task_is_gone_and_its_receipts_stay(house: House) -> None:
    task = house.task(name="Look at it")
    session = house.through(task)
    post(house.owner, "console-task-delete", task.pk)
    listed = text(house.owner, "console-runs").partition('id="ended-title"')[0]
    assert "Look at it" not in listed
    assert "deleted since" in text(house.owner, "console-run", session.pk)
