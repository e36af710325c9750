"""Alerts about spending: who is told, what a reached limit stops, and until when (contract autonomy B4)."""

from __future__ import annotations

import json
from collections.abc import Iterator
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
from apps.guard.schemas import Admitted, BudgetAlert, Refused
from kernel.tenancy import tenant_scope
from tests.factories.guard import change_run, make_budget, make_run, reread
from tests.factories.tenants import make_tenant
from tests.guard.test_money import admit, admitted, settle
from tests.rivals import race

LONG_AGO = date(2020, 1, 1)


@pytest.fixture
def told() -> Iterator[list[BudgetAlert]]:
    """Every alert that was announced, as a room above would hear it."""
    heard: list[BudgetAlert] = []
    signals.budget_alert.connect(heard.append)
    yield heard
    signals.budget_alert.disconnect(heard.append)


def spend(run: GuardedRun, amount: str) -> None:
    settle(admitted(run, amount), amount)


def percents(told: list[BudgetAlert]) -> list[int]:
    return [alert.threshold for alert in told]


def written(tenant: Any) -> list[int]:
    with tenant_scope(tenant):
        rows = AuditEntry.objects.filter(event="budget_alert").order_by("seq").values_list("data", flat=True)
        return [json.loads(data)["percent"] for data in rows]


def unattended(tenant: Any, **fields: Any) -> GuardedRun:
    run = make_run(tenant, origin="background", **fields)
    change_run(run, phase="interactive")
    return run


def want(tenant: Any, on_limit: str) -> None:
    with tenant_scope(tenant):
        SpendingPolicy.objects.create(on_limit=on_limit)


def reach(tenant: Any, limit: str = "1") -> Budget:
    """A day's limit that has been reached to the last cent."""
    budget = make_budget(tenant, limit)
    spend(make_run(tenant), limit)
    return budget


def outcome(run: GuardedRun, estimate: str = "0") -> RefusalCode | None:
    found = admit(run, estimate)
    assert isinstance(found, Admitted | Refused)
    return found.code if isinstance(found, Refused) else None


# Told once


def test_each_threshold_is_told_once_in_a_window(tenant: Any, told: list[BudgetAlert]) -> None:
    make_budget(tenant, "1")
    run = make_run(tenant)
    for _ in range(10):
        spend(run, "0.1")
    assert (percents(told), written(tenant)) == ([50, 80, 90, 100], [50, 80, 90, 100])


def test_charge_that_passes_several_thresholds_tells_each(tenant: Any, told: list[BudgetAlert]) -> None:
    make_budget(tenant, "1")
    spend(make_run(tenant), "0.85")
    assert percents(told) == [50, 80]


def test_reservation_alone_tells_nothing(tenant: Any, told: list[BudgetAlert]) -> None:
    make_budget(tenant, "1")
    admitted(make_run(tenant), "0.99")
    assert told == []


def test_alert_says_of_whom_and_how_much(tenant: Any, told: list[BudgetAlert]) -> None:
    budget = make_budget(tenant, "1")
    spend(make_run(tenant), "0.5")
    alert = told[0]
    assert (alert.budget_id, alert.holder, alert.ref, alert.spent, alert.limit) == (
        budget.pk,
        Holder.TENANT,
        tenant.pk,
        Decimal("0.5"),
        Decimal(1),
    )


def test_day_and_month_tell_of_themselves(tenant: Any, told: list[BudgetAlert]) -> None:
    for period, limit in (("day", "1"), ("month", "2")):
        make_budget(tenant, limit, period=period)
    spend(make_run(tenant), "1")
    assert sorted((alert.period, alert.threshold) for alert in told) == [
        ("day", 50),
        ("day", 80),
        ("day", 90),
        ("day", 100),
        ("month", 50),
    ]


def test_new_window_tells_anew(tenant: Any, told: list[BudgetAlert]) -> None:
    budget = make_budget(tenant, "1")
    run = make_run(tenant)
    spend(run, "0.5")
    with tenant_scope(tenant):
        Budget.objects.filter(pk=budget.pk).update(window_start=LONG_AGO)
    spend(run, "0.5")
    assert percents(told) == [50, 50]


def test_raised_limit_tells_anew(tenant: Any, told: list[BudgetAlert]) -> None:
    make_budget(tenant, "1")
    run = make_run(tenant)
    spend(run, "0.5")
    with tenant_scope(tenant):
        services.set_budget(Period.DAY, Decimal(2))
    spend(run, "0.5")
    assert percents(told) == [50, 50]


def test_visitors_budget_tells_nobody(tenant: Any, told: list[BudgetAlert]) -> None:
    make_budget(tenant, "1", visitor_ref=uuid4())
    assert told == []


def test_alert_falls_with_the_charge_that_passed_it(tenant: Any, told: list[BudgetAlert]) -> None:
    make_budget(tenant, "1")
    call = admitted(make_run(tenant), "0.5")

    def charge_in_vain() -> None:
        with tenant_scope(tenant):
            services.settle(call, cost=Decimal("0.5"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        charge_in_vain()
    assert written(tenant) == []


def test_rivals_tell_of_a_threshold_once(tenant: Any, told: list[BudgetAlert]) -> None:
    make_budget(tenant, "0.8")
    answers = race(*(partial(spend, make_run(tenant), "0.1") for _ in range(8)))
    assert (answers, sorted(percents(told))) == ([None] * 8, [50, 80, 90, 100])


# What a reached limit stops


def test_refusal_with_the_money_gone_tells_that_the_limit_is_reached(tenant: Any, told: list[BudgetAlert]) -> None:
    make_budget(tenant, "1")
    run = make_run(tenant)
    spend(run, "0.95")
    for _ in range(2):
        admit(run, "0.1")
    assert percents(told) == [50, 80, 90, 100]


def test_one_call_that_is_too_dear_does_not_close_the_window(tenant: Any, told: list[BudgetAlert]) -> None:
    make_budget(tenant, "1")
    run = make_run(tenant)
    admit(run, "50")
    assert (percents(told), outcome(run, "0.1")) == ([], None)


def test_calls_under_way_do_not_close_the_window(tenant: Any, told: list[BudgetAlert]) -> None:
    make_budget(tenant, "1")
    run = make_run(tenant)
    call = admitted(run, "1")
    admit(run, "0.1")
    settle(call, "0.1")
    assert outcome(run, "0.1") is None


WAYS = {
    # what the tenant wants: (a chat's paid call, a critical task's free call, another task's free call)
    "pause_all": (RefusalCode.GLOBAL_DAILY, RefusalCode.GLOBAL_DAILY, RefusalCode.GLOBAL_DAILY),
    "pause_non_critical": (None, None, RefusalCode.GLOBAL_DAILY),
    "alert_only": (None, None, None),
}


@pytest.mark.parametrize("wanted", WAYS)
def test_reached_limit_does_what_the_tenant_wants(tenant: Any, wanted: str) -> None:
    want(tenant, wanted)
    reach(tenant)
    chat, critical, other = make_run(tenant), unattended(tenant, critical=True), unattended(tenant)
    assert (outcome(chat, "0.1"), outcome(critical), outcome(other)) == WAYS[wanted]


def test_reached_limit_pauses_without_a_word_of_the_tenant(tenant: Any) -> None:
    reach(tenant)
    assert outcome(unattended(tenant)) is RefusalCode.GLOBAL_DAILY


@pytest.mark.parametrize("origin", ["chat", "work"])
def test_reached_limit_lets_what_somebody_waits_for_go_on_for_nothing(tenant: Any, origin: str) -> None:
    reach(tenant)
    assert outcome(make_run(tenant, origin=origin)) is None


def test_reached_limit_of_another_tenant_pauses_nothing_here(tenant: Any) -> None:
    reach(make_tenant())
    assert outcome(unattended(tenant)) is None


def test_paused_run_is_not_over(tenant: Any) -> None:
    reach(tenant)
    run = unattended(tenant)
    outcome(run)
    assert (reread(run).status, reread(run).halt_state) == ("running", "running")


# Until when


def test_pause_of_a_limit_ends_with_its_window(tenant: Any) -> None:
    budget = reach(tenant)
    with tenant_scope(tenant):
        Budget.objects.filter(pk=budget.pk).update(window_start=LONG_AGO, paused_in=LONG_AGO)
    run = unattended(tenant)
    assert (outcome(run), outcome(run, "0.5")) == (None, None)


def test_administrators_pause_outlives_every_window(tenant: Any) -> None:
    budget = reach(tenant)
    with tenant_scope(tenant):
        SystemControl.objects.create(pause="pause_all")
        Budget.objects.filter(pk=budget.pk).update(window_start=LONG_AGO, paused_in=LONG_AGO)
    assert outcome(unattended(tenant)) is RefusalCode.PAUSED


def test_resume_lets_work_go_on_but_spends_no_more(tenant: Any) -> None:
    reach(tenant)
    with tenant_scope(tenant):
        services.resume_spending(actor="user:1")
    run = unattended(tenant)
    assert (outcome(run), outcome(run, "0.1")) == (None, RefusalCode.GLOBAL_DAILY)


def test_resume_holds_for_the_whole_window(tenant: Any) -> None:
    reach(tenant)
    with tenant_scope(tenant):
        services.resume_spending(actor="user:1")
    outcome(make_run(tenant), "0.1")
    assert outcome(unattended(tenant)) is None


def test_resume_leaves_an_administrators_pause_alone(tenant: Any) -> None:
    reach(tenant)
    with tenant_scope(tenant):
        SystemControl.objects.create(pause="pause_all")
        services.resume_spending(actor="user:1")
    assert outcome(unattended(tenant)) is RefusalCode.PAUSED


def test_resume_of_nothing_is_not_written_down(tenant: Any) -> None:
    with tenant_scope(tenant):
        assert services.resume_spending(actor="user:1") == 0
    with tenant_scope(tenant):
        assert not AuditEntry.objects.filter(event="spending_resumed").exists()


def test_raised_limit_ends_the_pause(tenant: Any) -> None:
    reach(tenant)
    with tenant_scope(tenant):
        services.set_budget(Period.DAY, Decimal(5))
    run = unattended(tenant)
    assert (outcome(run), outcome(run, "0.1")) == (None, None)
