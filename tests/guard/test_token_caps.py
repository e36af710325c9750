"""A run's cap on model tokens is reserved from like money: before a model is asked, and settled afterwards."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from apps.guard import services
from apps.guard.enums import RefusalCode
from apps.guard.models import GuardedRun
from apps.guard.schemas import Admitted, Limits, NeedsApproval, Refused
from kernel.tenancy import tenant_scope
from llm.runs import Usage
from tests.factories.guard import change_run, make_run, reread
from tests.guard.conftest import admit
from tests.rivals import race

MODEL = "openai:gpt-4o-mini"


def ask(run: Any, tokens: int, model: str = MODEL) -> Admitted | Refused | NeedsApproval:
    forecast = Usage(input_tokens=tokens // 2, output_tokens=tokens - tokens // 2)
    return admit(run, None, tool="plan", model=model, forecast=forecast)


def begun(run: Any, tokens: int) -> Admitted:
    found = ask(run, tokens)
    assert isinstance(found, Admitted)
    return found


@pytest.fixture
def run(tenant: Any) -> GuardedRun:
    return make_run(tenant, limits=Limits(tokens=1000))


def test_call_is_begun_up_to_exactly_the_token_cap(run: GuardedRun) -> None:
    found = ask(run, 1001)
    assert isinstance(found, Refused)
    assert found.code is RefusalCode.BUDGET_TOKENS
    begun(run, 1000)


def test_calls_under_way_count_and_give_back_what_they_did_not_use(tenant: Any, run: GuardedRun) -> None:
    first = begun(run, 600)
    assert isinstance(ask(run, 600), Refused)
    with tenant_scope(tenant):
        services.charge(first, Usage(input_tokens=50, output_tokens=50, requests=1))
    begun(run, 900)


def test_call_whose_end_is_unknown_keeps_its_tokens(tenant: Any, run: GuardedRun) -> None:
    begun(run, 600)
    with tenant_scope(tenant):
        assert services.abandon_calls(run.pk) == 1
    assert isinstance(ask(run, 600), Refused)


def test_rivals_cannot_pass_the_token_cap_together(run: GuardedRun) -> None:
    answers = race(*[partial(ask, run, 300)] * 12)
    assert sum(isinstance(answer, Admitted) for answer in answers) == 3


@pytest.mark.parametrize("origin", ["background", "work"])
def test_call_that_does_not_fit_leaves_the_rest_to_smaller_ones(tenant: Any, origin: str) -> None:
    phase = "analysis" if origin == "background" else "execution"
    run = make_run(tenant, origin=origin, phase=phase, limits=Limits(tokens=1000))
    found = ask(run, 5000)
    assert isinstance(found, Refused)
    assert found.too_large is True
    assert reread(run).halt_state == "running"
    begun(run, 500)


def test_dear_call_leaves_the_money_to_cheaper_ones(tenant: Any) -> None:
    run = make_run(tenant, origin="work", phase="execution", limits=Limits(cost_usd=Decimal("0.001")))
    assert isinstance(ask(run, 1_000_000), Refused)
    assert reread(run).cost_cap_reached is False
    begun(run, 100)


def test_used_up_token_cap_ends_what_works_alone(tenant: Any) -> None:
    run = make_run(tenant, origin="background", phase="analysis", limits=Limits(tokens=1000))
    change_run(run, input_tokens=950)
    found = ask(run, 100)
    assert isinstance(found, Refused)
    assert found.too_large is False
    assert reread(run).halt_state == "halted"


def test_built_in_model_reserves_no_tokens(run: GuardedRun) -> None:
    assert isinstance(ask(run, 5000, model="builtin:grounded"), Admitted)


@pytest.mark.parametrize("counted", [{"unmeasured": 1}, {}], ids=["nothing reported", "zero reported"])
def test_provider_that_counts_nothing_uses_up_the_token_cap_all_the_same(
    tenant: Any, run: GuardedRun, counted: Any
) -> None:
    call = begun(run, 800)
    with tenant_scope(tenant):
        services.charge(call, Usage(requests=1, **counted))
    assert reread(run).input_tokens + reread(run).output_tokens == 800
    assert isinstance(ask(run, 800), Refused)


def test_call_takes_no_longer_than_is_left_of_its_run(tenant: Any) -> None:
    assert begun(make_run(tenant, limits=Limits(wall_seconds=20)), 10).call.patience_seconds <= 20
