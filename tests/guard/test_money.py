"""Every cent once: reservations, charges, budgets and their windows."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.db import Error, connection
from django.db.models import Sum
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from apps.audit.models import AuditEntry
from apps.guard import services
from apps.guard.enums import Intent, Period, RefusalCode
from apps.guard.models import Budget, SpendEntry, ToolCall
from apps.guard.registry import Handler
from apps.guard.schemas import Admitted, CallFailed, Limits
from apps.guard.services.settlement import CallLost
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.guard import answer, audited, change_run, make_budget, make_call, make_run, reread
from tests.factories.tenants import make_deployment, make_tenant
from tests.guard.conftest import Handle, admit, admitted, call, failing, money, refusal, settle, spend

AMOUNTS = st.decimals(min_value=0, max_value=2, places=9)
NOTHING = (Decimal(0), Decimal(0))


def ledger(tenant: Any) -> list[tuple[str, Decimal]]:
    with tenant_scope(tenant):
        return list(SpendEntry.objects.order_by("created_at").values_list("kind", "amount"))


# A model run between its halves


@pytest.mark.parametrize("period", ["day", "month"])
def test_budget_is_set_and_written_down_once(tenant: Any, period: str) -> None:
    with tenant_scope(tenant):
        for limit in ("2", "2", "3"):
            services.set_budget(Period(period), Decimal(limit), actor="user:1")
    with tenant_scope(tenant):
        written = AuditEntry.objects.filter(actor="user:1").order_by("seq").values_list("data", flat=True)
        assert Budget.objects.get(period=period).limit_usd == 3
        assert [json.loads(data)["change"] for data in written] == ["added", "changed"]


@pytest.mark.parametrize(("cost", "charged"), [("0.07", Decimal("0.07")), (None, Decimal("0.25"))])
def test_estimate_is_reserved_and_what_it_really_cost_is_charged_once(
    tenant: Any, cost: str | None, charged: Decimal
) -> None:
    run = make_run(tenant)
    call = admitted(run, "0.25")
    assert money(run) == (Decimal(0), Decimal("0.25"))
    assert settle(call, cost) == charged
    with pytest.raises(CallLost):
        settle(call, cost)
    assert money(run) == (charged, Decimal(0))
    assert ledger(tenant) == [("reserve", Decimal("0.25")), ("settle", charged - Decimal("0.25"))]


def test_free_call_leaves_no_ledger_entry(tenant: Any) -> None:
    spend(make_run(tenant), "0")
    assert ledger(tenant) == []


def test_failed_model_run_is_charged_and_audited_as_an_error(tenant: Any) -> None:
    run = make_run(tenant)
    settle(admitted(run, "0.25"), "0.25", failed="provider_error")
    assert audited(run)[-1] == ("tool_call", '{"cost_usd":"0.25","intent":"converse","outcome":"error","seq":1}')


def test_tool_cannot_pass_as_a_model_run(tenant: Any) -> None:
    run = make_run(tenant)
    with tenant_scope(tenant), pytest.raises(SilasError):
        services.admit(run.ref, Intent.RUN_SKILL, make_call())


# Locks the run, then the budgets and the installation's, together; then all is written at once.
@pytest.mark.parametrize(("estimate", "admission", "settlement"), [("0", 2, 1), ("0.1", 4, 3)])
def test_model_run_is_admitted_and_settled_with_few_statements(
    tenant: Any, django_assert_num_queries: Any, estimate: str, admission: int, settlement: int
) -> None:
    for period in Period:
        make_budget(tenant, "9", period=period)
    run, asked = make_run(tenant), make_call(tool="converse", estimate=Decimal(estimate))
    with tenant_scope(tenant), django_assert_num_queries(admission, connection=connection):
        call = services.admit(run.ref, Intent.CONVERSE, asked)
    assert isinstance(call, Admitted)
    with tenant_scope(tenant), django_assert_num_queries(settlement, connection=connection):
        services.settle(call, cost=Decimal(estimate))


# Through the door


@pytest.mark.parametrize(
    ("handler", "estimate", "charged"),
    [
        (answer(cost=Decimal("0.03")), "0.05", "0.03"),
        (answer(cost=Decimal("0.03")), None, "0.03"),
        (failing(RuntimeError("gone")), "0.05", "0.05"),
        (failing(CallFailed("busy", "Not now.", cost=Decimal("0.01"))), "0.05", "0.01"),
    ],
    ids=["its cost", "a cost that nobody estimated", "a crash", "a coded failure"],
)
def test_tool_is_charged_to_run_and_budget(
    tenant: Any, handle: Handle, handler: Handler, estimate: str | None, charged: str
) -> None:
    handle(handler)
    budget, run = make_budget(tenant, "1"), make_run(tenant)
    call(run, make_call(estimate=estimate and Decimal(estimate)))
    assert money(run) == (Decimal(charged), Decimal(0))
    assert money(budget) == (Decimal(charged), Decimal(0))


# Budgets


@pytest.mark.parametrize(("period", "code"), [("day", RefusalCode.GLOBAL_DAILY), ("month", RefusalCode.GLOBAL_MONTHLY)])
def test_budget_that_would_be_exceeded_refuses(tenant: Any, period: str, code: RefusalCode) -> None:
    make_budget(tenant, "0.5", period=period)
    run = make_run(tenant)
    admitted(run, "0.5")
    assert refusal(run, "0.000000001") is code


def test_deployments_budget_holds_for_its_runs_only_and_the_tenants_for_all(tenant: Any) -> None:
    poor, rich = (make_deployment(tenant).pk for _ in range(2))
    make_budget(tenant, "0", deployment_id=poor)
    make_budget(tenant, "0.1")
    assert refusal(make_run(tenant, deployment_id=poor)) is RefusalCode.GLOBAL_DAILY
    assert refusal(make_run(tenant, deployment_id=rich)) is None
    assert refusal(make_run(tenant)) is RefusalCode.GLOBAL_DAILY


def test_refusal_by_one_budget_leaves_the_others_and_those_of_other_tenants_untouched(
    tenant: Any, other_tenant: Any
) -> None:
    foreign, month = make_budget(other_tenant, "1"), make_budget(tenant, "9", period="month")
    make_budget(tenant, "0.1")
    admitted(make_run(tenant))
    assert refusal(make_run(tenant)) is RefusalCode.GLOBAL_DAILY
    assert money(month) == (Decimal(0), Decimal("0.1"))
    assert money(foreign) == NOTHING


@pytest.mark.parametrize(("origin", "state"), [("chat", "running"), ("background", "halted")])
def test_reached_budget_is_written_down_and_ends_what_works_alone(tenant: Any, origin: str, state: str) -> None:
    make_budget(tenant, "0")
    run = make_run(tenant, origin=origin)
    if origin == "background":
        change_run(run, phase="interactive")
    admit(run, "0.1")
    assert audited(run) == [("cost_cap_reached", '{"projected_usd":"0.1","reason":"global_daily"}')]
    assert reread(run).halt_state == state


def put_budget_into(budget: Budget, window: date) -> None:
    with tenant_scope(budget.tenant_id):
        Budget.objects.filter(pk=budget.pk).update(window_start=window)


def test_new_day_begins_with_nothing_spent(tenant: Any) -> None:
    budget, run = make_budget(tenant, "0.1"), make_run(tenant)
    admitted(run, "0.1")
    put_budget_into(budget, date(2020, 1, 1))
    assert refusal(run, "0.1") is None
    assert money(budget) == (Decimal(0), Decimal("0.1"))


def test_settlement_after_the_day_leaves_the_new_day_alone(tenant: Any) -> None:
    budget = make_budget(tenant, "1")
    call = admitted(make_run(tenant), "0.1")
    put_budget_into(budget, date(2999, 1, 1))
    settle(call, "0.05")
    assert money(budget) == (Decimal(0), Decimal("0.1"))


def make_eastern_tenant() -> Any:
    return make_tenant(timezone="Pacific/Kiritimati")


def move_west(tenant: Any) -> None:
    with tenant_scope(tenant):
        type(tenant).objects.filter(pk=tenant.pk).update(timezone="Pacific/Niue")


def test_window_is_the_tenants_own_day(database: None) -> None:
    tenant = make_eastern_tenant()
    budget = make_budget(tenant, "1")
    call = admitted(make_run(tenant))
    assert call.day is not None
    hours_ahead = (datetime.combine(call.day, datetime.min.time(), UTC) - datetime.now(UTC)).total_seconds() / 3600
    assert reread(budget).window_start == call.day
    assert -38 < hours_ahead <= 14


def test_tenant_that_moves_west_gets_no_day_twice(database: None) -> None:
    tenant = make_eastern_tenant()
    budget, run = make_budget(tenant, "0.1"), make_run(tenant)
    spend(run, "0.1")
    move_west(tenant)
    assert refusal(run, "0.1") is RefusalCode.GLOBAL_DAILY
    assert money(budget) == (Decimal("0.1"), Decimal(0))


def test_cost_after_a_move_west_is_counted_in_the_window_that_has_begun(database: None) -> None:
    tenant = make_eastern_tenant()
    budget, run = make_budget(tenant, "1"), make_run(tenant)
    spend(run, "0.1")
    move_west(tenant)
    settle(admitted(run, "0.3"), "0.2")
    assert money(budget) == (Decimal("0.3"), Decimal(0))


@pytest.mark.parametrize("statement", ["UPDATE guard_spendentry SET amount = 0", "DELETE FROM guard_spendentry"])
def test_ledger_cannot_be_rewritten(tenant: Any, statement: str) -> None:
    admitted(make_run(tenant))
    with pytest.raises(Error), tenant_scope(tenant), connection.cursor() as cursor:
        cursor.execute(statement)


# Any order of calls

STEPS = st.lists(st.tuples(AMOUNTS, st.sampled_from(["settle", "fail", "keep"]), st.integers(0, 100)), max_size=8)


@settings(max_examples=40, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cap=st.none() | AMOUNTS, daily=AMOUNTS, steps=STEPS)
# Nine tenths spent and a call refused: the limit is reached, and pauses the company for what would still have fitted.
@example(
    None, Decimal(1), [(Decimal("0.95"), "settle", 100), (Decimal("0.2"), "keep", 0), (Decimal("0.01"), "keep", 0)]
)
def test_spend_in_any_order_is_never_above_a_cap_and_always_adds_up(
    database: None, cap: Decimal | None, daily: Decimal, steps: list[tuple[Decimal, str, int]]
) -> None:
    tenant = make_tenant()
    budget = make_budget(tenant, str(daily))
    run = make_run(tenant, limits=Limits(cost_usd=cap))
    spent = committed = Decimal(0)
    reached = False
    for estimate, ending, percent in steps:
        call = admit(run, estimate)
        within_cap = cap is None or committed + estimate <= cap
        within_day = estimate == 0 or (not reached and committed + estimate <= daily)
        assert isinstance(call, Admitted) is (within_cap and within_day)
        reached = reached or (within_cap and not within_day and spent >= daily * Decimal("0.9"))
        if isinstance(call, Admitted):
            cost = (estimate * percent / 100).quantize(Decimal("0.000000001"))
            if ending != "keep":
                settle(call, str(cost), failed="" if ending == "settle" else "broken")
                spent += cost
            committed += estimate if ending == "keep" else cost
    with tenant_scope(tenant):
        entered = SpendEntry.objects.aggregate(sum=Sum("amount"))["sum"] or Decimal(0)
        charged = ToolCall.objects.aggregate(sum=Sum("charged"))["sum"] or Decimal(0)
    assert sum(money(run)) == sum(money(budget)) == entered == committed
    assert committed <= daily
    assert charged == money(run)[0]
