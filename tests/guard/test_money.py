"""Every cent once: reservations, charges, budgets and their windows."""

from __future__ import annotations

import json
from collections.abc import Callable
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
from apps.guard.enums import Holder, Intent, Period, RefusalCode
from apps.guard.models import Budget, GuardedRun, SpendEntry, ToolCall
from apps.guard.schemas import Admitted, CallFailed, Done, HandlerResult, Limits, NeedsApproval, Refused
from apps.guard.services.settlement import CallLost
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.guard import answer, audited, change_run, make_budget, make_call, make_run, reread
from tests.factories.tenants import make_deployment, make_tenant
from tests.guard.conftest import call

Handle = Callable[..., None]
AMOUNTS = st.decimals(min_value=0, max_value=2, places=9)


def admit(run: GuardedRun, estimate: Decimal | str | None = "0.1", **fields: Any) -> Admitted | Refused | NeedsApproval:
    amount = None if estimate is None else Decimal(estimate)
    with tenant_scope(run.tenant_id):
        return services.admit(run.ref, Intent.CONVERSE, make_call(tool="converse", estimate=amount, **fields))


def admitted(run: GuardedRun, estimate: str = "0.1", **fields: Any) -> Admitted:
    found = admit(run, estimate, **fields)
    assert isinstance(found, Admitted)
    return found


def settle(call: Admitted, cost: str | None, **more: Any) -> Decimal:
    with tenant_scope(call.run.tenant_id):
        return services.settle(call, cost=None if cost is None else Decimal(cost), **more)


def money(row: GuardedRun | Budget) -> tuple[Decimal, Decimal]:
    """(charged, reserved) as it stands now."""
    fresh = reread(row)
    return (fresh.spent, fresh.reserved) if isinstance(fresh, Budget) else (fresh.cost_total, fresh.cost_reserved)


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
        changes = [json.loads(data)["change"] for data in written]
    assert changes == ["added", "changed"]


def test_budget_of_a_deployment_stands_beside_its_tenants(tenant: Any) -> None:
    deployment = make_deployment(tenant)
    with tenant_scope(tenant):
        services.set_budget(Period.DAY, Decimal(2))
        services.set_budget(Period.DAY, Decimal(1), holder=Holder.DEPLOYMENT, ref=deployment.pk)
        assert Budget.objects.count() == 2


def test_admission_reserves_the_estimate(tenant: Any) -> None:
    run = make_run(tenant)
    admitted(run, "0.25")
    assert money(run) == (Decimal(0), Decimal("0.25"))


def test_settlement_charges_what_it_really_cost(tenant: Any) -> None:
    run = make_run(tenant)
    settle(admitted(run, "0.25"), "0.07")
    assert money(run) == (Decimal("0.07"), Decimal(0))


def test_settlement_of_an_unknown_cost_charges_the_estimate(tenant: Any) -> None:
    run = make_run(tenant)
    assert (settle(admitted(run, "0.25"), None), money(run)) == (Decimal("0.25"), (Decimal("0.25"), Decimal(0)))


def test_cost_far_below_a_cent_keeps_its_digits(tenant: Any) -> None:
    run = make_run(tenant)
    for _ in range(3):
        settle(admitted(run, "0.000000001"), "0.000000001")
    assert money(run) == (Decimal("0.000000003"), Decimal(0))


def test_ledger_entries_of_a_call_add_up_to_its_charge(tenant: Any) -> None:
    settle(admitted(make_run(tenant), "0.25"), "0.07")
    assert ledger(tenant) == [("reserve", Decimal("0.25")), ("settle", Decimal("-0.18"))]


def test_free_call_leaves_no_ledger_entry(tenant: Any) -> None:
    settle(admitted(make_run(tenant), "0"), "0")
    assert ledger(tenant) == []


def test_model_tokens_are_counted(tenant: Any) -> None:
    run = make_run(tenant)
    settle(admitted(run), "0.1", input_tokens=100, output_tokens=20)
    fresh = reread(run)
    assert (fresh.input_tokens, fresh.output_tokens) == (100, 20)


def test_failed_model_run_is_charged_and_audited_as_an_error(tenant: Any) -> None:
    run = make_run(tenant)
    settle(admitted(run, "0.25"), "0.25", failed="provider_error")
    assert audited(run)[-1] == ("tool_call", '{"cost_usd":"0.25","intent":"converse","outcome":"error","seq":1}')


def test_second_settlement_is_refused_and_charges_nothing(tenant: Any) -> None:
    run = make_run(tenant)
    call = admitted(run, "0.25")
    settle(call, "0.07")
    with pytest.raises(CallLost):
        settle(call, "0.07")
    assert money(run) == (Decimal("0.07"), Decimal(0))


def test_tool_cannot_pass_as_a_model_run(tenant: Any) -> None:
    run = make_run(tenant)
    with tenant_scope(tenant), pytest.raises(SilasError):
        services.admit(run.ref, Intent.RUN_SKILL, make_call())


def test_admission_of_a_free_model_run_is_two_statements(tenant: Any, django_assert_num_queries: Any) -> None:
    run = make_run(tenant)
    asked = make_call(tool="converse", estimate=Decimal(0))
    with tenant_scope(tenant), django_assert_num_queries(2, connection=connection):
        services.admit(run.ref, Intent.CONVERSE, asked)


def test_settlement_of_a_free_model_run_is_one_statement(tenant: Any, django_assert_num_queries: Any) -> None:
    call = admitted(make_run(tenant), "0")
    with tenant_scope(tenant), django_assert_num_queries(1, connection=connection):
        services.settle(call, cost=Decimal(0))


# Through the door


def test_tools_cost_is_charged(tenant: Any, handle: Handle) -> None:
    handle(answer(cost=Decimal("0.03")))
    run = make_run(tenant)
    outcome = call(run, make_call(estimate=Decimal("0.05")))
    assert isinstance(outcome, Done) and (outcome.cost, money(run)[0]) == (Decimal("0.03"), Decimal("0.03"))


def test_crash_of_a_tool_charges_the_estimate(tenant: Any, handle: Handle) -> None:
    def fails(_: Any) -> HandlerResult:
        raise RuntimeError("gone")

    handle(fails)
    run = make_run(tenant)
    call(run, make_call(estimate=Decimal("0.05")))
    assert money(run) == (Decimal("0.05"), Decimal(0))


def test_coded_failure_charges_what_it_says(tenant: Any, handle: Handle) -> None:
    def fails(_: Any) -> HandlerResult:
        raise CallFailed("busy", "Not now.", cost=Decimal("0.01"))

    handle(fails)
    run = make_run(tenant)
    call(run, make_call(estimate=Decimal("0.05")))
    assert money(run) == (Decimal("0.01"), Decimal(0))


def test_cost_that_nobody_estimated_reaches_the_budget_too(tenant: Any, handle: Handle) -> None:
    handle(answer(cost=Decimal("0.03")))
    budget = make_budget(tenant, "1")
    call(make_run(tenant))
    assert money(budget) == (Decimal("0.03"), Decimal(0))


# Budgets


@pytest.mark.parametrize(("period", "code"), [("day", RefusalCode.GLOBAL_DAILY), ("month", RefusalCode.GLOBAL_MONTHLY)])
def test_budget_that_would_be_exceeded_refuses(tenant: Any, period: str, code: RefusalCode) -> None:
    make_budget(tenant, "0.5", period=period)
    run = make_run(tenant)
    admitted(run, "0.5")
    refused = admit(run, "0.000000001")
    assert isinstance(refused, Refused) and refused.code is code


def test_budget_of_zero_refuses_the_first_paid_call(tenant: Any) -> None:
    make_budget(tenant, "0")
    assert isinstance(admit(make_run(tenant), "0.000000001"), Refused)


def test_budget_of_zero_lets_a_free_call_through(tenant: Any) -> None:
    make_budget(tenant, "0")
    assert isinstance(admit(make_run(tenant), "0"), Admitted)


def test_deployments_budget_holds_for_its_runs_only(tenant: Any) -> None:
    poor, rich = make_deployment(tenant), make_deployment(tenant)
    make_budget(tenant, "0", deployment=poor)
    outcomes = [admit(make_run(tenant, deployment_id=each.pk)) for each in (poor, rich)]
    assert [type(outcome) for outcome in outcomes] == [Refused, Admitted]


def test_tenants_budget_holds_for_every_deployment(tenant: Any) -> None:
    make_budget(tenant, "0.1")
    admitted(make_run(tenant, deployment_id=make_deployment(tenant).pk))
    assert isinstance(admit(make_run(tenant, deployment_id=make_deployment(tenant).pk)), Refused)


def test_budget_of_another_tenant_is_not_touched(tenant: Any, other_tenant: Any) -> None:
    budget = make_budget(other_tenant, "1")
    admitted(make_run(tenant))
    assert money(budget) == (Decimal(0), Decimal(0))


def test_refusal_by_one_budget_leaves_the_others_untouched(tenant: Any) -> None:
    month = make_budget(tenant, "9", period="month")
    make_budget(tenant, "0")
    admit(make_run(tenant))
    assert money(month) == (Decimal(0), Decimal(0))


def test_reached_budget_is_written_down(tenant: Any) -> None:
    make_budget(tenant, "0")
    run = make_run(tenant)
    admit(run, "0.1")
    assert audited(run) == [("cost_cap_reached", '{"projected_usd":"0.1","reason":"global_daily"}')]


@pytest.mark.parametrize(("origin", "state"), [("chat", "running"), ("background", "halted")])
def test_reached_budget_ends_what_works_alone(tenant: Any, origin: str, state: str) -> None:
    make_budget(tenant, "0")
    run = make_run(tenant, origin=origin)
    if origin == "background":
        change_run(run, phase="interactive")
    admit(run, "0.1")
    assert reread(run).halt_state == state


def test_settlement_frees_the_budget(tenant: Any) -> None:
    budget = make_budget(tenant, "0.1")
    run = make_run(tenant)
    settle(admitted(run, "0.1"), "0.02")
    assert (money(budget), isinstance(admit(run, "0.08"), Admitted)) == ((Decimal("0.02"), Decimal(0)), True)


def put_budget_into(budget: Budget, window: date) -> None:
    with tenant_scope(budget.tenant_id):
        Budget.objects.filter(pk=budget.pk).update(window_start=window)


def test_new_day_begins_with_nothing_spent(tenant: Any) -> None:
    budget = make_budget(tenant, "0.1")
    run = make_run(tenant)
    admitted(run, "0.1")
    put_budget_into(budget, date(2020, 1, 1))
    assert (isinstance(admit(run, "0.1"), Admitted), money(budget)) == (True, (Decimal(0), Decimal("0.1")))


def test_settlement_after_the_day_leaves_the_new_day_alone(tenant: Any) -> None:
    budget = make_budget(tenant, "1")
    call = admitted(make_run(tenant), "0.1")
    put_budget_into(budget, date(2999, 1, 1))
    settle(call, "0.05")
    assert money(budget) == (Decimal(0), Decimal("0.1"))


def test_window_is_the_tenants_own_day(database: None) -> None:
    tenant = make_tenant(timezone="Pacific/Kiritimati")
    budget = make_budget(tenant, "1")
    call = admitted(make_run(tenant))
    assert call.day is not None
    hours_ahead = (datetime.combine(call.day, datetime.min.time(), UTC) - datetime.now(UTC)).total_seconds() / 3600
    assert (reread(budget).window_start, -38 < hours_ahead <= 14) == (call.day, True)


def test_tenant_that_moves_west_gets_no_day_twice(database: None) -> None:
    tenant = make_tenant(timezone="Pacific/Kiritimati")
    budget = make_budget(tenant, "0.1")
    run = make_run(tenant)
    settle(admitted(run, "0.1"), "0.1")
    with tenant_scope(tenant):
        type(tenant).objects.filter(pk=tenant.pk).update(timezone="Pacific/Niue")
    assert (isinstance(admit(run, "0.1"), Refused), money(budget)) == (True, (Decimal("0.1"), Decimal(0)))


def test_cost_after_a_move_west_is_counted_in_the_window_that_has_begun(database: None) -> None:
    tenant = make_tenant(timezone="Pacific/Kiritimati")
    budget = make_budget(tenant, "1")
    run = make_run(tenant)
    settle(admitted(run, "0.1"), "0.1")
    with tenant_scope(tenant):
        type(tenant).objects.filter(pk=tenant.pk).update(timezone="Pacific/Niue")
    settle(admitted(run, "0.3"), "0.2")
    assert money(budget) == (Decimal("0.3"), Decimal(0))


def test_second_budget_for_the_same_thing_is_refused_by_the_database(tenant: Any) -> None:
    make_budget(tenant, "1")
    with pytest.raises(Error):
        make_budget(tenant, "2")


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
    assert (sum(money(run)), sum(money(budget)), entered) == (committed, committed, committed)
    assert (committed <= daily, charged) == (True, money(run)[0])
