"""Whose money is it? The installation's, the company's, a chatbot's, a visitor's, a task's: a call fits into each."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import Error, connection

from apps.guard import services
from apps.guard.enums import Holder, Intent, Period, RefusalCode
from apps.guard.models import Budget, GuardedRun, PlatformBudget, SpendingPolicy
from apps.guard.schemas import Admitted, NeedsApproval, Refused
from kernel.errors import NotFound, SilasError
from kernel.tenancy import platform_scope, tenant_scope
from tests.factories.guard import answer, make_budget, make_call, make_run, reread
from tests.factories.tenants import make_deployment, make_tenant
from tests.guard.conftest import call
from tests.guard.test_money import money, put_budget_into, settle
from tests.rivals import race

Handle = Callable[..., None]
ASKED = Admitted | Refused | NeedsApproval


def admit(run: GuardedRun, estimate: str = "0.1", *, visitor: UUID | None = None) -> ASKED:
    asked = make_call(tool="converse", estimate=Decimal(estimate))
    with tenant_scope(run.tenant_id):
        return services.admit(replace(run.ref, visitor=visitor), Intent.CONVERSE, asked)


def spend(run: GuardedRun, amount: str, **more: Any) -> None:
    admitted = admit(run, amount, **more)
    assert isinstance(admitted, Admitted)
    settle(admitted, amount)


def code(found: ASKED) -> RefusalCode | None:
    return found.code if isinstance(found, Refused) else None


def limit(tenant: Any, amount: str, **more: Any) -> Budget:
    with tenant_scope(tenant):
        return services.set_budget(more.pop("period", Period.DAY), Decimal(amount), **more)


def each_visitor(tenant: Any, amount: str | None) -> None:
    with tenant_scope(tenant):
        defaults = {"visitor_daily_usd": None if amount is None else Decimal(amount)}
        SpendingPolicy.objects.update_or_create(defaults=defaults)


# What a limit may be


@pytest.mark.parametrize("amount", ["-0.000000001", "NaN", "Infinity", "1000000000", "0.0000000001"])
def test_limit_that_is_no_amount_is_refused(tenant: Any, amount: str) -> None:
    with pytest.raises(SilasError) as refusal:
        limit(tenant, amount)
    assert refusal.value.code == "bad_limit"


@pytest.mark.parametrize(
    ("holder", "ref"),
    [("tenant", uuid4()), ("deployment", None), ("visitor", None), ("task", None), ("platform", uuid4())],
)
def test_holder_without_its_own_id_is_refused(tenant: Any, holder: str, ref: UUID | None) -> None:
    with pytest.raises(SilasError) as refusal:
        limit(tenant, "1", holder=Holder(holder), ref=ref)
    assert refusal.value.code == "bad_holder"


def test_budget_of_two_holders_is_refused_by_the_database(tenant: Any) -> None:
    with pytest.raises(Error):
        make_budget(tenant, "1", visitor_ref=uuid4(), task_ref=uuid4())


def test_budget_without_a_limit_is_refused_by_the_database(tenant: Any) -> None:
    with pytest.raises(Error), tenant_scope(tenant):
        Budget.objects.create(period="day")


def test_limit_of_another_tenant_cannot_be_removed(tenant: Any, other_tenant: Any) -> None:
    budget = make_budget(other_tenant, "1")
    with pytest.raises(NotFound), tenant_scope(tenant):
        services.remove_budget(budget.pk, actor="user:1")


def test_removed_limit_holds_no_longer(tenant: Any) -> None:
    budget = make_budget(tenant, "0")
    with tenant_scope(tenant):
        services.remove_budget(budget.pk, actor="user:1")
    assert isinstance(admit(make_run(tenant)), Admitted)


# Visitors and tasks


def test_visitors_budget_holds_for_that_visitor_only(tenant: Any) -> None:
    poor, rich, run = uuid4(), uuid4(), make_run(tenant)
    limit(tenant, "0", holder=Holder.VISITOR, ref=poor)
    assert [code(admit(run, visitor=each)) for each in (poor, rich)] == [RefusalCode.COST_CAP_REACHED, None]


def test_visitors_budget_spans_conversations(tenant: Any) -> None:
    visitor = uuid4()
    limit(tenant, "0.15", holder=Holder.VISITOR, ref=visitor)
    spend(make_run(tenant), "0.1", visitor=visitor)
    assert code(admit(make_run(tenant), visitor=visitor)) is RefusalCode.COST_CAP_REACHED


def test_reached_share_of_a_visitor_does_not_latch_the_run(tenant: Any) -> None:
    visitor, run = uuid4(), make_run(tenant)
    limit(tenant, "0", holder=Holder.VISITOR, ref=visitor)
    admit(run, visitor=visitor)
    assert reread(run).cost_cap_reached is False


def test_tasks_budget_holds_for_its_runs_only(tenant: Any) -> None:
    task = uuid4()
    limit(tenant, "0", holder=Holder.TASK, ref=task)
    runs = [make_run(tenant, task_ref=each) for each in (task, uuid4(), None)]
    assert [code(admit(run)) for run in runs] == [RefusalCode.COST_CAP_REACHED, None, None]


def test_call_reserves_from_every_holder_and_settles_with_each(tenant: Any) -> None:
    deployment, visitor, task = make_deployment(tenant), uuid4(), uuid4()
    budgets = [
        limit(tenant, "9"),
        limit(tenant, "9", holder=Holder.DEPLOYMENT, ref=deployment.pk),
        limit(tenant, "9", holder=Holder.VISITOR, ref=visitor),
        limit(tenant, "9", holder=Holder.TASK, ref=task, period=Period.MONTH),
    ]
    admitted = admit(make_run(tenant, deployment_id=deployment.pk, task_ref=task), "0.3", visitor=visitor)
    assert isinstance(admitted, Admitted)
    reserved = [money(each) for each in budgets]
    settle(admitted, "0.2")
    assert (set(reserved), {money(each) for each in budgets}) == (
        {(Decimal(0), Decimal("0.3"))},
        {(Decimal("0.2"), Decimal(0))},
    )


def test_cost_that_nobody_estimated_reaches_the_tasks_budget_too(tenant: Any, handle: Handle) -> None:
    handle(answer(cost=Decimal("0.03")))
    task = uuid4()
    budget = limit(tenant, "1", holder=Holder.TASK, ref=task)
    call(make_run(tenant, task_ref=task))
    assert money(budget) == (Decimal("0.03"), Decimal(0))


def test_id_of_another_tenants_visitor_finds_no_budget(tenant: Any, other_tenant: Any) -> None:
    visitor = uuid4()
    foreign = limit(other_tenant, "0", holder=Holder.VISITOR, ref=visitor)
    assert (code(admit(make_run(tenant), visitor=visitor)), money(foreign)) == (None, (Decimal(0), Decimal(0)))


# A limit that each visitor has


def test_limit_of_each_visitor_is_counted_for_each(tenant: Any) -> None:
    each_visitor(tenant, "0.15")
    first, second, run = uuid4(), uuid4(), make_run(tenant)
    spend(run, "0.1", visitor=first)
    assert [code(admit(run, visitor=one)) for one in (first, second)] == [RefusalCode.COST_CAP_REACHED, None]


def test_limit_of_each_visitor_follows_the_policy_at_once(tenant: Any) -> None:
    each_visitor(tenant, "0.15")
    visitor, run = uuid4(), make_run(tenant)
    spend(run, "0.1", visitor=visitor)
    found = []
    for amount in ("0.2", "0.1", None):
        each_visitor(tenant, amount)
        found.append(code(admit(run, visitor=visitor)))
    assert found == [None, RefusalCode.COST_CAP_REACHED, None]


def test_visitors_own_limit_outranks_that_of_each(tenant: Any) -> None:
    each_visitor(tenant, "0")
    visitor = uuid4()
    limit(tenant, "5", holder=Holder.VISITOR, ref=visitor)
    assert isinstance(admit(make_run(tenant), visitor=visitor), Admitted)


def test_rivals_of_a_new_visitor_share_one_budget(tenant: Any) -> None:
    each_visitor(tenant, "0.35")
    visitor = uuid4()
    answers = race(*(partial(admit, make_run(tenant), visitor=visitor) for _ in range(6)))
    assert sum(isinstance(found, Admitted) for found in answers) == 3


# The installation


@pytest.fixture
def platform(database: None) -> Iterator[Callable[..., PlatformBudget]]:
    """`platform(amount)`: the operator's cap; taken away afterwards, because every tenant spends from it."""

    def set_to(amount: str, period: str = "day") -> PlatformBudget:
        with platform_scope("test"):
            return services.set_platform_budget(Period(period), Decimal(amount), actor="user:1")

    yield set_to
    with platform_scope("test"):
        PlatformBudget.objects.all().delete()


def of_platform() -> tuple[Decimal, Decimal]:
    with platform_scope("test"):
        row = PlatformBudget.objects.get()
    return row.spent, row.reserved


@pytest.mark.parametrize(("period", "expected"), [("day", "global_daily"), ("month", "global_monthly")])
def test_installations_cap_holds_over_all_tenants(tenant: Any, platform: Any, period: str, expected: str) -> None:
    platform("0.15", period)
    spend(make_run(make_tenant()), "0.1")
    assert code(admit(make_run(tenant))) == expected


def test_installations_cap_holds_whatever_a_tenant_wants(tenant: Any, platform: Any) -> None:
    platform("0")
    with tenant_scope(tenant):
        SpendingPolicy.objects.create(on_limit="alert_only")
    assert code(admit(make_run(tenant))) is RefusalCode.GLOBAL_DAILY


def test_installations_cap_lets_a_free_call_through(tenant: Any, platform: Any) -> None:
    platform("0")
    assert isinstance(admit(make_run(tenant), "0"), Admitted)


def test_installations_cap_counts_reservations_and_charges(tenant: Any, platform: Any) -> None:
    platform("5")
    admitted = admit(make_run(tenant), "0.3")
    assert isinstance(admitted, Admitted)
    before = of_platform()
    settle(admitted, "0.2")
    assert (before, of_platform()) == ((Decimal(0), Decimal("0.3")), (Decimal("0.2"), Decimal(0)))


def test_refusal_by_the_installation_touches_no_budget_of_the_tenant(tenant: Any, platform: Any) -> None:
    budget = limit(tenant, "9")
    platform("0")
    admit(make_run(tenant))
    assert money(budget) == (Decimal(0), Decimal(0))


def test_installations_new_day_begins_with_nothing_spent(tenant: Any, platform: Any) -> None:
    platform("0.1")
    spend(make_run(tenant), "0.1")
    with platform_scope("test"):
        PlatformBudget.objects.update(window_start=date(2020, 1, 1))
    assert (isinstance(admit(make_run(tenant)), Admitted), of_platform()) == (True, (Decimal(0), Decimal("0.1")))


def test_tenant_sees_nothing_of_the_installations_budget(tenant: Any, platform: Any) -> None:
    platform("5")
    with tenant_scope(tenant), connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM guard_platformbudget")
        assert cursor.fetchone() == (0,)


@pytest.mark.parametrize("amount", ["0", "99"])
def test_tenant_sees_no_other_tenant_after_asking_for_room(
    tenant: Any, other_tenant: Any, platform: Any, amount: str
) -> None:
    platform(amount)
    make_budget(other_tenant, "1")
    with tenant_scope(tenant), connection.cursor() as cursor:
        services.admit(make_run(tenant).ref, Intent.CONVERSE, make_call(tool="converse", estimate=Decimal(1)))
        cursor.execute("SELECT count(*) FROM guard_budget WHERE tenant_id = %s", [other_tenant.pk])
        assert cursor.fetchone() == (0,)


def test_tenant_cannot_move_the_installations_limit(tenant: Any, platform: Any) -> None:
    platform("5")
    with tenant_scope(tenant):
        PlatformBudget.objects.update(limit_usd=Decimal(999))
    with platform_scope("test"):
        assert PlatformBudget.objects.get().limit_usd == 5


def test_operator_hears_of_each_threshold_once(tenant: Any, platform: Any, caplog: pytest.LogCaptureFixture) -> None:
    platform("1")
    run = make_run(tenant)
    with caplog.at_level(logging.WARNING, logger="apps.guard.ledger"):
        for _ in range(9):
            spend(run, "0.1")
    told = [record.getMessage().rsplit("=", 1)[1] for record in caplog.records]
    assert told == ["50", "80", "90"]


def test_rivals_of_two_tenants_never_overspend_the_installation(tenant: Any, other_tenant: Any, platform: Any) -> None:
    platform("0.35")
    for each in (tenant, other_tenant):
        limit(each, "9")
    answers = race(*(partial(admit, make_run(each), "0.1") for each in (tenant, other_tenant) * 4))
    assert (sum(isinstance(found, Admitted) for found in answers), sum(of_platform())) == (3, Decimal("0.3"))


# Round trips


def test_budgets_are_found_and_locked_with_two_statements(tenant: Any, django_assert_num_queries: Any) -> None:
    for holder, ref in ((Holder.TENANT, None), (Holder.VISITOR, uuid4()), (Holder.TASK, uuid4())):
        limit(tenant, "9", holder=holder, ref=ref)
    run = make_run(tenant)
    asked = make_call(tool="converse", estimate=Decimal("0.1"))
    # lock the run, lock the budgets, ask the installation; then the call, the ledger, the budgets, the installation
    with tenant_scope(tenant), django_assert_num_queries(7, connection=connection):
        services.admit(run.ref, Intent.CONVERSE, asked)


def test_new_window_of_a_visitor_begins_with_nothing_spent(tenant: Any) -> None:
    visitor, run = uuid4(), make_run(tenant)
    budget = limit(tenant, "0.1", holder=Holder.VISITOR, ref=visitor)
    spend(run, "0.1", visitor=visitor)
    put_budget_into(budget, date(2020, 1, 1))
    assert isinstance(admit(run, visitor=visitor), Admitted)
