"""A task runs under its member's consent: who else may change it, and who may only stop it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from apps.autonomy import services
from apps.autonomy.enums import TriggerKind
from apps.autonomy.models import Task
from kernel.errors import SilasError
from tests.factories.autonomy import House
from tests.factories.tenants import make_member

HOURLY = {"seconds": 3600}


def make_opted_in_member(house: House, role: str) -> Any:
    member = make_member(house.tenant, role)
    house.do(services.opt_in, member)
    return member


def save(house: House, task: Task | None, user: Any) -> Task:
    said = {"name": "Mine now", "deployment_id": house.deployment.pk, "prompt": "Find everything."}
    saved: Task = house.do(services.save_task, task.pk if task else None, user=user, **said)
    return saved


def change(house: House, task: Task, user: Any) -> None:
    save(house, task, user)


def add_trigger(house: House, task: Task, user: Any) -> None:
    house.do(services.add_trigger, task.pk, user=user, kind=TriggerKind.INTERVAL, spec=HOURLY)


def change_trigger(house: House, task: Task, user: Any) -> None:
    trigger = house.trigger(task, TriggerKind.INTERVAL, **HOURLY)
    house.do(services.change_trigger, trigger.pk, user=user, spec={"seconds": 60})


@pytest.mark.parametrize("press", [change, add_trigger, change_trigger])
def test_approver_changes_nothing_that_runs_in_the_owners_name(
    house: House, press: Callable[[House, Task, Any], None]
) -> None:
    task, approver = house.task(), make_opted_in_member(house, "approver")
    with pytest.raises(SilasError) as refused:
        press(house, task, approver)
    assert refused.value.code == "task_of_another"
    assert refused.value.status == 403


def test_approver_changes_their_own(house: House) -> None:
    approver = make_opted_in_member(house, "approver")
    assert save(house, save(house, None, approver), approver).owner_id == approver.pk


def test_owner_changes_an_approvers_task_and_it_stays_the_approvers(house: House) -> None:
    approver = make_opted_in_member(house, "approver")
    assert save(house, save(house, None, approver), house.owner).owner_id == approver.pk


@pytest.mark.parametrize("stop", ["off", "delete_when", "delete"])
def test_approver_stops_what_runs_in_the_owners_name(house: House, stop: str) -> None:
    task, approver = house.task(), make_opted_in_member(house, "approver")
    trigger = house.trigger(task, TriggerKind.INTERVAL, due=True, **HOURLY)
    house.do(
        {
            "off": lambda: services.change_trigger(trigger.pk, user=approver, enabled=False),
            "delete_when": lambda: services.delete_trigger(trigger.pk, user=approver),
            "delete": lambda: services.delete_task(task.pk, user=approver),
        }[stop]
    )
    house.finish()
    assert house.sessions() == []
