"""Whose money is it? The installation's, the company's, a chatbot's, a visitor's, a task's: a call fits into each."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import Error, connection

from apps.guard import services
from apps.guard.enums import Holder, Intent, Period, RefusalCode
from apps.guard.models import Budget, PlatformBudget, SpendingPolicy
from apps.guard.schemas import Admitted
from kernel.errors import NotFound, SilasError
from kernel.tenancy import platform_scope, tenant_scope
from tests.factories.guard import make_budget, make_call, make_run, reread
from tests.factories.tenants import make_deployment, make_member, make_tenant
from tests.guard.conftest import admit, admitted, money, refusal, settle, spend
from tests.rivals import race

NOTHING = (Decimal(0), Decimal(0))
REACHED = RefusalCode.COST_CAP_REACHED


def limit(tenant: Any, amount: str, **more: Any) -> Budget:
    with tenant_scope(tenant):
        return services.set_budget(more.pop("period", Period.DAY), Decimal(amount), **more)


def each_visitor(tenant: Any, amount: str | None) -> None:
    with tenant_scope(tenant):
        defaults = {"visitor_daily_usd": None if amount is None else Decimal(amount)}
        SpendingPolicy.objects.update_or_create(defaults=defaults)


# What a limit may be


@pytest.mark.parametrize(
    ("amount", "holder", "ref", "code"),
    [
        *((amount, "tenant", None, "bad_limit") for amount in ("-0.000000001", "NaN", "Infinity", "1000000000")),
        ("0.0000000001", "tenant", None, "bad_limit"),
        ("1", "tenant", uuid4(), "bad_holder"),
        *(("1", holder, None, "bad_holder") for holder in ("deployment", "visitor", "task")),
        ("1", "platform", uuid4(), "bad_holder"),
    ],
)
def test_limit_that_is_no_amount_or_nobodys_is_refused(
    tenant: Any, amount: str, holder: str, ref: UUID | None, code: str
) -> None:
    with pytest.raises(SilasError) as refusal:
        limit(tenant, amount, holder=Holder(holder), ref=ref)
    assert refusal.value.code == code


@pytest.mark.parametrize(
    "fields",
    [{"visitor_ref": uuid4(), "task_ref": uuid4()}, {"limit_usd": None}, {"period": "month"}],
    ids=["of two holders", "without a limit", "a second one"],
)
def test_budget_that_cannot_be_is_refused_by_the_database(tenant: Any, fields: dict[str, Any]) -> None:
    make_budget(tenant, "1", period="month")
    with pytest.raises(Error):
        make_budget(tenant, "1", **fields)


def test_limit_is_removed_by_its_own_tenant_alone(tenant: Any, other_tenant: Any) -> None:
    budget = make_budget(tenant, "0")
    with pytest.raises(NotFound), tenant_scope(other_tenant):
        services.remove_budget(budget.pk, actor="user:1")
    assert refusal(make_run(tenant)) is RefusalCode.GLOBAL_DAILY
    with tenant_scope(tenant):
        services.remove_budget(budget.pk, actor="user:1")
    assert refusal(make_run(tenant)) is None


# Visitors and tasks


def test_visitors_budget_holds_for_that_visitor_in_all_conversations(tenant: Any, other_tenant: Any) -> None:
    visitor = uuid4()
    budget = limit(tenant, "0.15", holder=Holder.VISITOR, ref=visitor)
    spend(make_run(tenant), "0.1", visitor=visitor)
    run = make_run(tenant)
    assert refusal(run, visitor=visitor) is REACHED
    assert reread(run).cost_cap_reached is False
    assert refusal(run, visitor=uuid4()) is None
    assert refusal(make_run(other_tenant), visitor=visitor) is None
    assert money(budget) == (Decimal("0.1"), Decimal(0))
    with tenant_scope(tenant):
        Budget.objects.filter(pk=budget.pk).update(window_start=date(2020, 1, 1))
    assert refusal(run, visitor=visitor) is None


def test_tasks_budget_holds_for_its_runs_only(tenant: Any) -> None:
    task = uuid4()
    limit(tenant, "0", holder=Holder.TASK, ref=task)
    assert [refusal(make_run(tenant, task_ref=each)) for each in (task, uuid4(), None)] == [REACHED, None, None]


@pytest.mark.parametrize("estimate", ["0.3", "0"], ids=["estimated", "that nobody estimated"])
def test_call_reserves_from_every_holder_and_settles_with_each(tenant: Any, estimate: str) -> None:
    deployment, visitor, task = make_deployment(tenant), uuid4(), uuid4()
    budgets = [
        limit(tenant, "9"),
        limit(tenant, "9", holder=Holder.DEPLOYMENT, ref=deployment.pk),
        limit(tenant, "9", holder=Holder.VISITOR, ref=visitor),
        limit(tenant, "9", holder=Holder.TASK, ref=task, period=Period.MONTH),
    ]
    call = admitted(make_run(tenant, deployment_id=deployment.pk, task_ref=task), estimate, visitor=visitor)
    assert {money(each) for each in budgets} == {(Decimal(0), Decimal(estimate))}
    settle(call, "0.2")
    assert {money(each) for each in budgets} == {(Decimal("0.2"), Decimal(0))}


# A limit that each visitor has


def test_limit_of_each_visitor_is_counted_for_each_and_follows_the_policy_at_once(tenant: Any) -> None:
    each_visitor(tenant, "0.15")
    first, second, run = uuid4(), uuid4(), make_run(tenant)
    spend(run, "0.1", visitor=first)
    assert [refusal(run, visitor=one) for one in (first, second)] == [REACHED, None]
    for amount, code in (("0.2", None), ("0.1", REACHED), (None, None)):
        each_visitor(tenant, amount)
        assert refusal(run, visitor=first) is code


def test_visitors_own_limit_outranks_that_of_each(tenant: Any) -> None:
    each_visitor(tenant, "0")
    visitor = uuid4()
    limit(tenant, "5", holder=Holder.VISITOR, ref=visitor)
    assert refusal(make_run(tenant), visitor=visitor) is None


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
            return PlatformBudget.objects.create(period=period, limit_usd=Decimal(amount))

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
    assert refusal(make_run(tenant)) == expected


def test_installations_cap_holds_whatever_a_tenant_wants_and_touches_no_budget_of_it(
    tenant: Any, platform: Any
) -> None:
    platform("0")
    budget = limit(tenant, "9")
    with tenant_scope(tenant):
        SpendingPolicy.objects.create(on_limit="alert_only")
    assert refusal(make_run(tenant)) is RefusalCode.GLOBAL_DAILY
    assert refusal(make_run(tenant), "0") is None
    assert money(budget) == NOTHING


def test_installations_cap_counts_reservations_and_charges_in_its_day(tenant: Any, platform: Any) -> None:
    platform("0.3")
    call = admitted(make_run(tenant), "0.3")
    assert of_platform() == (Decimal(0), Decimal("0.3"))
    settle(call, "0.2")
    assert of_platform() == (Decimal("0.2"), Decimal(0))
    with platform_scope("test"):
        PlatformBudget.objects.update(window_start=date(2020, 1, 1))
    assert refusal(make_run(tenant), "0.3") is None
    assert of_platform() == (Decimal(0), Decimal("0.3"))


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
    assert [record.getMessage().rsplit("=", 1)[1] for record in caplog.records] == ["50", "80", "90"]


def test_rivals_of_two_tenants_never_overspend_the_installation(tenant: Any, other_tenant: Any, platform: Any) -> None:
    platform("0.35")
    for each in (tenant, other_tenant):
        limit(each, "9")
    answers = race(*(partial(admit, make_run(each), "0.1") for each in (tenant, other_tenant) * 4))
    assert sum(isinstance(found, Admitted) for found in answers) == 3
    assert sum(of_platform()) == Decimal("0.3")


@pytest.mark.parametrize("role", ["approver", "agent", "viewer"])
def test_only_owners_change_limits(tenant: Any, role: str) -> None:
    user = make_member(tenant, role)
    with tenant_scope(tenant):
        budget = services.set_budget(Period.DAY, Decimal(5))
        for change in (
            lambda: services.set_budget(Period.DAY, Decimal(50), actor=user.actor, user=user),
            lambda: services.remove_budget(budget.pk, actor=user.actor, user=user),
        ):
            with pytest.raises(SilasError) as refusal:
                change()
            assert refusal.value.code == "forbidden_role"
        assert Budget.objects.get(pk=budget.pk).limit_usd == 5
