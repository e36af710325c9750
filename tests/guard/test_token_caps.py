"""A run's cap on model tokens is reserved from like money: before a model is asked, and settled afterwards."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from apps.guard import services
from apps.guard.enums import Intent, RefusalCode
from apps.guard.schemas import Admitted, Limits, NeedsApproval, Refused
from kernel.tenancy import tenant_scope
from llm.runs import Usage
from tests.factories.guard import change_run, make_call, make_run, reread
from tests.rivals import race

MODEL = "openai:gpt-4o-mini"


def ask(run: Any, tokens: int, model: str = MODEL) -> Admitted | Refused | NeedsApproval:
    forecast = Usage(input_tokens=tokens // 2, output_tokens=tokens - tokens // 2)
    with tenant_scope(run.tenant_id):
        return services.admit(run.ref, Intent.CONVERSE, make_call(tool="plan", model=model, forecast=forecast))


def used(run: Any) -> int:
    fresh = reread(run)
    return int(fresh.input_tokens + fresh.output_tokens)


def test_call_that_could_pass_the_token_cap_is_not_begun(tenant: Any) -> None:
    run = make_run(tenant, limits=Limits(tokens=1000))
    refusal = ask(run, 1001)
    assert isinstance(refusal, Refused)
    assert refusal.code is RefusalCode.BUDGET_TOKENS


def test_call_that_uses_exactly_the_token_cap_is_begun(tenant: Any) -> None:
    assert isinstance(ask(make_run(tenant, limits=Limits(tokens=1000)), 1000), Admitted)


def test_calls_under_way_count_for_the_token_cap(tenant: Any) -> None:
    run = make_run(tenant, limits=Limits(tokens=1000))
    assert isinstance(ask(run, 600), Admitted)
    assert isinstance(ask(run, 600), Refused)


def test_settled_call_gives_back_what_it_did_not_use(tenant: Any) -> None:
    run = make_run(tenant, limits=Limits(tokens=1000))
    first = ask(run, 600)
    assert isinstance(first, Admitted)
    with tenant_scope(tenant):
        services.charge(first, Usage(input_tokens=50, output_tokens=50, requests=1))
    assert isinstance(ask(run, 900), Admitted)


def test_call_whose_end_is_unknown_keeps_its_tokens(tenant: Any) -> None:
    run = make_run(tenant, limits=Limits(tokens=1000))
    first = ask(run, 600)
    assert isinstance(first, Admitted)
    with tenant_scope(tenant):
        services.abandon_calls(run.pk)
    assert isinstance(ask(run, 600), Refused)


def test_rivals_cannot_pass_the_token_cap_together(tenant: Any) -> None:
    run = make_run(tenant, limits=Limits(tokens=1000))

    answers = race(*[lambda: ask(run, 300)] * 12)
    assert sum(isinstance(answer, Admitted) for answer in answers) == 3


@pytest.mark.parametrize("origin", ["background", "work"])
def test_call_that_does_not_fit_leaves_the_rest_to_smaller_ones(tenant: Any, origin: str) -> None:
    run = make_run(tenant, origin=origin, phase="analysis" if origin == "background" else "execution")
    change_run(run, limits={"tokens": 1000})
    refusal = ask(run, 5000)
    assert isinstance(refusal, Refused)
    assert refusal.too_large is True
    assert reread(run).halt_state == "running"
    assert isinstance(ask(run, 500), Admitted)


def test_dear_call_leaves_the_money_to_cheaper_ones(tenant: Any) -> None:
    run = make_run(tenant, origin="work", phase="execution", limits=Limits(cost_usd=Decimal("0.001")))
    assert isinstance(ask(run, 1_000_000), Refused)
    assert reread(run).cost_cap_reached is False
    assert isinstance(ask(run, 100), Admitted)


def test_used_up_token_cap_ends_what_works_alone(tenant: Any) -> None:
    run = make_run(tenant, origin="background", phase="analysis", limits=Limits(tokens=1000))
    change_run(run, input_tokens=950)
    refusal = ask(run, 100)
    assert isinstance(refusal, Refused)
    assert refusal.too_large is False
    assert reread(run).halt_state == "halted"


def test_built_in_model_reserves_no_tokens(tenant: Any) -> None:
    run = make_run(tenant, limits=Limits(tokens=10))
    assert isinstance(ask(run, 5000, model="builtin:grounded"), Admitted)


@pytest.mark.parametrize("counted", [{"unmeasured": 1}, {}], ids=["nothing reported", "zero reported"])
def test_provider_that_counts_nothing_uses_up_the_token_cap_all_the_same(tenant: Any, counted: Any) -> None:
    run = make_run(tenant, limits=Limits(tokens=1000))
    call = ask(run, 800)
    assert isinstance(call, Admitted)
    with tenant_scope(tenant):
        services.charge(call, Usage(requests=1, **counted))
    assert used(run) == 800
    assert isinstance(ask(run, 800), Refused)


def test_call_takes_no_longer_than_is_left_of_its_run(tenant: Any) -> None:
    run = make_run(tenant, limits=Limits(wall_seconds=20))
    call = ask(run, 10)
    assert isinstance(call, Admitted)
    assert call.call.patience_seconds <= 20
