"""Alerts about spending: who is told, what a reached limit stops, and until when (contract autonomy B4)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import uuid4

import pytest

from apps.audit.models import AuditEntry
from apps.guard import services, signals
from apps.guard.enums import Holder, Period, RefusalCode
from apps.guard.models import Budget, GuardedRun, SpendingPolicy, SystemControl
from apps.guard.schemas import BudgetFacts
from kernel.tenancy import tenant_scope
from tests.factories.guard import change_run, make_budget, make_run, reread
from tests.factories.tenants import make_tenant
from tests.guard.conftest import admit, admitted, refusal, settle, spend
from tests.rivals import race

LONG_AGO = date(2020, 1, 1)
ALL = [50, 80, 90, 100]
Told = list[tuple[BudgetFacts, int]]


@pytest.fixture
def told() -> Iterator[Told]:
    """Every alert that was announced, as a room above would hear it."""
    heard: Told = []
    receiver = signals.budget_alert.connect(lambda *alert: heard.append(alert))
    yield heard
    signals.budget_alert.disconnect(receiver)


def percents(told: Told) -> list[int]:
    return [threshold for _, threshold in told]


def written(tenant: Any) -> list[int]:
    with tenant_scope(tenant):
        rows = AuditEntry.objects.filter(event="budget_alert").order_by("seq").values_list("data", flat=True)
        return [json.loads(data)["percent"] for data in rows]


def unattended(tenant: Any, **fields: Any) -> GuardedRun:
    run = make_run(tenant, origin="background", **fields)
    change_run(run, phase="interactive")
    return run


def reach(tenant: Any) -> None:
    """A day's limit has been reached to the last cent."""
    make_budget(tenant, "1")
    spend(make_run(tenant), "1")


def end_window() -> None:
    Budget.objects.update(window_start=LONG_AGO, paused_in=LONG_AGO)


def raise_limit() -> None:
    services.set_budget(Period.DAY, Decimal(5))


def resume() -> None:
    services.resume_spending(actor="user:1")


# Told once


@pytest.mark.parametrize(("charges", "expected"), [(["0.1"] * 10, ALL), (["0.85"], [50, 80])])
def test_each_threshold_that_a_charge_passes_is_told_once_in_a_window(
    tenant: Any, told: Told, charges: list[str], expected: list[int]
) -> None:
    make_budget(tenant, "1")
    run = make_run(tenant)
    for charge in charges:
        spend(run, charge)
    assert percents(told) == expected
    assert written(tenant) == expected


def test_reservation_alone_tells_nothing(tenant: Any, told: Told) -> None:
    make_budget(tenant, "1")
    admitted(make_run(tenant), "0.99")
    assert told == []


def test_alert_says_of_whom_and_how_much(tenant: Any, told: Told) -> None:
    row = make_budget(tenant, "1")
    spend(make_run(tenant), "0.5")
    ((budget, threshold),) = told
    assert threshold == 50
    assert budget.budget_id == row.pk
    assert budget.holder == Holder.TENANT
    assert budget.ref == tenant.pk
    assert budget.spent == Decimal("0.5")
    assert budget.limit == 1


def test_day_and_month_tell_of_themselves(tenant: Any, told: Told) -> None:
    for period, limit in (("day", "1"), ("month", "2")):
        make_budget(tenant, limit, period=period)
    spend(make_run(tenant), "1")
    heard = sorted((budget.period, threshold) for budget, threshold in told)
    assert heard == [*(("day", each) for each in ALL), ("month", 50)]


@pytest.mark.parametrize("change", [end_window, partial(services.set_budget, Period.DAY, Decimal(2))])
def test_new_window_and_raised_limit_tell_anew(tenant: Any, told: Told, change: Callable[[], object]) -> None:
    make_budget(tenant, "1")
    run = make_run(tenant)
    spend(run, "0.5")
    with tenant_scope(tenant):
        change()
    spend(run, "0.5")
    assert percents(told) == [50, 50]


def test_visitors_budget_tells_nobody(tenant: Any, told: Told) -> None:
    visitor = uuid4()
    make_budget(tenant, "1", visitor_ref=visitor)
    spend(make_run(tenant), "1", visitor=visitor)
    assert refusal(make_run(tenant), visitor=visitor) is RefusalCode.COST_CAP_REACHED
    assert told == []


def test_alert_falls_with_the_charge_that_passed_it(tenant: Any) -> None:
    make_budget(tenant, "1")
    call = admitted(make_run(tenant), "0.5")

    def charge_in_vain() -> None:
        with tenant_scope(tenant):
            services.settle(call, cost=Decimal("0.5"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        charge_in_vain()
    assert written(tenant) == []


def test_rivals_tell_of_a_threshold_once(tenant: Any, told: Told) -> None:
    make_budget(tenant, "0.8")
    assert race(*(partial(spend, make_run(tenant), "0.1") for _ in range(8))) == [None] * 8
    assert sorted(percents(told)) == ALL


# What a reached limit stops


def test_refusal_with_the_money_gone_tells_that_the_limit_is_reached(tenant: Any, told: Told) -> None:
    make_budget(tenant, "1")
    run = make_run(tenant)
    spend(run, "0.95")
    for _ in range(2):
        admit(run, "0.1")
    assert percents(told) == ALL


def test_one_call_that_is_too_dear_does_not_close_the_window(tenant: Any, told: Told) -> None:
    make_budget(tenant, "1")
    run = make_run(tenant)
    assert refusal(run, "50") is RefusalCode.GLOBAL_DAILY
    assert told == []
    assert refusal(run, "0.1") is None


def test_calls_under_way_do_not_close_the_window(tenant: Any) -> None:
    make_budget(tenant, "1")
    run = make_run(tenant)
    call = admitted(run, "1")
    admit(run, "0.1")
    settle(call, "0.1")
    assert refusal(run, "0.1") is None


DAILY = RefusalCode.GLOBAL_DAILY
WAYS = {
    # what the tenant wants: (a chat's paid call, a critical task's free call, another task's free call)
    "": (DAILY, DAILY, DAILY),
    "pause_all": (DAILY, DAILY, DAILY),
    "pause_non_critical": (None, None, DAILY),
    "alert_only": (None, None, None),
}


@pytest.mark.parametrize("wanted", WAYS)
def test_reached_limit_does_what_the_tenant_wants_and_ends_no_run(tenant: Any, wanted: str) -> None:
    if wanted:
        with tenant_scope(tenant):
            SpendingPolicy.objects.create(on_limit=wanted)
    reach(tenant)
    chat, critical, other = make_run(tenant), unattended(tenant, critical=True), unattended(tenant)
    assert (refusal(chat), refusal(critical, "0"), refusal(other, "0")) == WAYS[wanted]
    assert reread(other).status == "running"
    assert reread(other).halt_state == "running"


@pytest.mark.parametrize("origin", ["chat", "work"])
def test_reached_limit_lets_what_somebody_waits_for_go_on_for_nothing(tenant: Any, origin: str) -> None:
    reach(tenant)
    assert refusal(make_run(tenant, origin=origin), "0") is None


def test_reached_limit_of_another_tenant_pauses_nothing_here(tenant: Any) -> None:
    reach(make_tenant())
    assert refusal(unattended(tenant), "0") is None


# Until when


@pytest.mark.parametrize(("end", "paid"), [(end_window, None), (raise_limit, None), (resume, DAILY)])
def test_pause_of_a_limit_ends_for_the_whole_window_and_spends_no_more(
    tenant: Any, end: Callable[[], None], paid: RefusalCode | None
) -> None:
    reach(tenant)
    with tenant_scope(tenant):
        end()
    assert refusal(unattended(tenant), "0") is None
    assert refusal(make_run(tenant), "0.5") is paid
    assert refusal(unattended(tenant), "0") is None


@pytest.mark.parametrize("end", [end_window, resume])
def test_administrators_pause_outlives_every_window_and_a_resume(tenant: Any, end: Callable[[], None]) -> None:
    reach(tenant)
    with tenant_scope(tenant):
        SystemControl.objects.create(pause="pause_all")
        end()
    assert refusal(unattended(tenant), "0") is RefusalCode.PAUSED


def test_resume_of_nothing_is_not_written_down(tenant: Any) -> None:
    with tenant_scope(tenant):
        assert services.resume_spending(actor="user:1") == 0
    with tenant_scope(tenant):
        assert not AuditEntry.objects.filter(event="spending_resumed").exists()
