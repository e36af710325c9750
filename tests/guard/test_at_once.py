"""Calls that settle in one statement: their money, their entry and whoever has to be told, or nothing at all."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection

from apps.guard.enums import CallState
from apps.guard.models import ToolCall
from apps.guard.schemas import Done, Failed
from apps.guard.services.settlement import CallLost, settle_at_once
from kernel.tenancy import tenant_scope
from kernel.tenancy.scope import statement_scope
from tests.factories.guard import answer, audited, make_budget, make_call, make_run, reread
from tests.guard.conftest import call
from tests.guard.test_alerts import percents, told, written
from tests.guard.test_money import admitted, money

Handle = Callable[..., None]
__all__ = ["told"]


def test_it_is_one_statement_with_its_money_and_its_entry(tenant: Any) -> None:
    run, budget = make_run(tenant), make_budget(tenant, "1")
    mine, seen = admitted(run, "0.2"), []

    def see(execute: Any, sql: str, *rest: Any) -> Any:
        seen.append(sql)
        return execute(sql, *rest)

    with statement_scope(tenant.pk), connection.execute_wrapper(see):
        assert settle_at_once(mine, CallState.EXECUTED, cost=Decimal("0.1")) == Decimal("0.1")
    assert (len(seen), money(budget)) == (1, (Decimal("0.1"), Decimal(0)))
    assert audited(run)[-1] == ("tool_call", '{"cost_usd":"0.1","intent":"converse","outcome":"success","seq":1}')


def test_threshold_that_it_passes_is_told_once(tenant: Any, told: list[Any], handle: Handle) -> None:
    run, budget = make_run(tenant), make_budget(tenant, "1")
    handle(answer(cost=Decimal("0.3")))
    for _ in range(3):
        assert isinstance(call(run, make_call(estimate=Decimal("0.3"))), Done)
    assert (percents(told), written(tenant)) == ([50, 80, 90], [50, 80, 90])
    assert (money(budget), reread(run).cost_total) == ((Decimal("0.9"), Decimal(0)), Decimal("0.9"))
    assert len(audited(run)) == 6


def test_threshold_that_it_passes_leaves_it_undone(tenant: Any) -> None:
    run, budget = make_run(tenant), make_budget(tenant, "1")
    mine = admitted(run, "0.6")
    before = audited(run)
    with statement_scope(tenant.pk):
        assert settle_at_once(mine, CallState.EXECUTED, cost=None) is None
    assert (money(budget), audited(run)) == ((Decimal(0), Decimal("0.6")), before)


def test_call_that_was_given_up_meanwhile_is_lost(tenant: Any, handle: Handle) -> None:
    run = make_run(tenant)

    def give_it_up(_: Any) -> Any:
        with tenant_scope(tenant):
            found = ToolCall.objects.get(run=run)
            ToolCall.objects.filter(pk=found.pk).update(state="uncertain")
        return answer("late")(_)

    handle(give_it_up)
    outcome = call(run)
    assert isinstance(outcome, Failed) and outcome.uncertain and len(audited(run)) == 1


def test_call_of_another_tenant_is_not_settled(tenant: Any, other_tenant: Any) -> None:
    run = make_run(tenant)
    mine = admitted(run, "0.2")
    with statement_scope(other_tenant.pk), pytest.raises(CallLost):
        settle_at_once(mine, CallState.EXECUTED, cost=None)
    with tenant_scope(tenant):
        assert ToolCall.objects.get(run=run).state == "admitted"
