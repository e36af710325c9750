"""A reached company limit stops automations, with its own reason, and only until its window ends."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from apps.autonomy import services
from apps.autonomy.enums import SessionStatus
from apps.autonomy.services import admission
from apps.bus.enums import Queue
from apps.guard import services as guard
from apps.guard.enums import TerminalReason
from apps.guard.locks import current_days
from apps.guard.models import Budget, SpendingPolicy
from apps.guard.queries import current_pauses
from apps.guard.rules import window_start
from kernel.tenancy import tenant_scope
from tests.autonomy.test_brakes import begin_session, ending_of, run_in_worker
from tests.factories.autonomy import House, make_house
from tests.factories.guard import make_budget
from tests.factories.tenants import make_deployment

LONG_AGO = date(2020, 1, 1)


def reach_limit(house: House, period: str = "day", **fields: Any) -> Budget:
    """A limit that was reached in its current window."""
    with tenant_scope(house.tenant):
        window = window_start(period, current_days()[0])
    return make_budget(house.tenant, "1", period=period, paused_in=window, **fields)


def admit(house: House) -> int:
    return int(house.do(admission.admit_waiting))


def set_on_limit(house: House, on_limit: str) -> None:
    with tenant_scope(house.tenant):
        SpendingPolicy.objects.create(on_limit=on_limit)


@pytest.mark.parametrize(
    ("period", "reason"), [("day", TerminalReason.GLOBAL_DAILY), ("month", TerminalReason.GLOBAL_MONTHLY)]
)
def test_contract_global_limit_ends_a_running_session_by_its_own_name(
    house: House, period: str, reason: TerminalReason
) -> None:
    session, delivery = begin_session(house)
    reach_limit(house, period)
    assert ending_of(run_in_worker(house, session, delivery)) == (SessionStatus.HALTED, reason)


def test_session_waits_while_a_limit_is_reached(house: House) -> None:
    reach_limit(house)
    session = house.through(house.task())
    assert session.status == SessionStatus.QUEUED
    assert session.admitted_at is None


def test_contract_budget_rollover_lets_waiting_sessions_begin(house: House) -> None:
    budget = reach_limit(house)
    session = house.through(house.task())
    house.change(budget, paused_in=LONG_AGO)
    house.finish()
    assert house.session(session.pk).status == SessionStatus.COMPLETED


def test_owners_resume_lets_waiting_sessions_begin(house: House) -> None:
    reach_limit(house)
    session = house.through(house.task())
    house.do(guard.resume_spending, actor="user:1")
    house.finish()
    assert house.session(session.pk).status == SessionStatus.COMPLETED


def test_session_that_was_let_in_before_the_limit_goes_back_in_line_and_begins_later(house: House) -> None:
    session = house.run_now(house.task())
    admit(house)
    budget = reach_limit(house)
    house.work(Queue.EXECUTOR)
    waits = house.session(session.pk)
    house.change(budget, paused_in=LONG_AGO)
    house.finish()
    begins = house.session(session.pk)
    assert waits.status == SessionStatus.QUEUED
    assert waits.admitted_at is None
    assert begins.status == SessionStatus.COMPLETED


def test_limit_of_a_chatbot_pauses_no_other_one_and_holds_no_place(house: House) -> None:
    house.do(services.put_settings, actor="user:test", max_concurrent=1)
    paused = make_deployment(house.tenant)
    reach_limit(house, deployment=paused)
    house.run_now(house.task(priority=9, deployment_id=paused.pk))
    other = house.run_now(house.task())
    admit(house)
    assert [session.pk for session in house.sessions(admitted_at__isnull=False)] == [other.pk]


@pytest.mark.parametrize(("wanted", "most"), [("pause_all", 0), ("pause_non_critical", 1), ("alert_only", 2)])
def test_who_waits_at_a_reached_limit_is_the_companys_choice(house: House, wanted: str, most: int) -> None:
    set_on_limit(house, wanted)
    reach_limit(house)
    for critical in (True, False):
        house.run_now(house.task(critical=critical))
    assert admit(house) == most


def test_limit_of_another_company_pauses_nothing_here(house: House, other_tenant: Any) -> None:
    reach_limit(make_house(other_tenant))
    house.run_now(house.task())
    assert admit(house) == 1


def test_limit_of_one_task_or_visitor_pauses_no_company(house: House) -> None:
    task = house.task()
    reach_limit(house, task_ref=task.pk)
    with tenant_scope(house.tenant):
        assert not current_pauses().stops(house.deployment.pk, critical=False)
