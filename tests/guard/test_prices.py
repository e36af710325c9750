"""What will a model run cost, and what did it? The tenant's prices, what was learned, and what nobody knows."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import Error
from django.db.models import F
from django.db.models.functions import Now

from apps.guard import rules, services
from apps.guard.enums import RefusalCode
from apps.guard.estimates import NEWEST, quote
from apps.guard.models import GuardedRun, ModelPrice, SpendEntry, SpendingPolicy, ToolCall
from apps.guard.schemas import Admitted
from kernel.tenancy import tenant_scope
from llm.runs import Usage
from tests.factories.guard import make_budget, make_run, reread
from tests.guard.conftest import admitted, money, refusal

KNOWN, UNKNOWN = "openai:gpt-4o-mini", "openai:nobody-knows"
LIST_PRICE = Decimal("0.15"), Decimal("0.6")  # of KNOWN, in the public list
MOST = Usage(input_tokens=1_000_000, output_tokens=1_000_000)
COLD = sum(LIST_PRICE)


def asked(run: GuardedRun, model: str = KNOWN, *, purpose: str = "proxy", forecast: Usage = MOST) -> Admitted:
    return admitted(run, None, model=model, tool=purpose, forecast=forecast)


def charge(call: Admitted, tokens: int = 0, *, failed: str = "", **more: Any) -> Decimal:
    with tenant_scope(call.run.tenant_id):
        return services.charge(call, Usage(input_tokens=tokens, requests=1, **more), failed=failed)


def set_price(tenant: Any, model: str = KNOWN, price: str = "1", **more: Any) -> ModelPrice:
    fields = {"input_per_million": Decimal(price), "output_per_million": Decimal(price), **more}
    with tenant_scope(tenant):
        row: ModelPrice = ModelPrice.objects.update_or_create(model=model, defaults=fields)[0]
    return row


def set_default(tenant: Any) -> None:
    with tenant_scope(tenant):
        SpendingPolicy.objects.create(default_input=Decimal(2), default_output=Decimal(2))


def make_history(run: GuardedRun, *charged: str, model: str = KNOWN, purpose: str = "proxy", **fields: Any) -> None:
    """Model runs that are over, the newest last."""
    with tenant_scope(run.tenant_id):
        ToolCall.objects.bulk_create(
            ToolCall(
                run_id=run.pk,
                seq=1000 + number,
                effect_key=f"{model}{purpose}{number}",
                intent="converse",
                tool=purpose,
                model=model,
                state="executed",
                charged=Decimal(amount),
                **{"measured": True, **fields},
            )
            for number, amount in enumerate(charged)
        )
        ToolCall.objects.update(settled_at=Now() - timedelta(seconds=5000) + timedelta(seconds=1) * F("seq"))


def estimate(tenant: Any) -> Decimal | None:
    with tenant_scope(tenant):
        return quote(KNOWN, "proxy", MOST).estimate


# Whose price


def test_model_run_is_reserved_for_at_the_tenants_own_price_or_the_public_one(tenant: Any, other_tenant: Any) -> None:
    run = make_run(tenant)
    set_price(other_tenant, price="1")
    assert asked(run).reserved == COLD
    set_price(tenant, price="1")
    assert asked(run).reserved == 2
    assert asked(run, "builtin:grounded").reserved == 0


def test_price_that_nobody_knows_refuses_unless_the_tenant_has_a_default(tenant: Any, other_tenant: Any) -> None:
    run = make_run(tenant)
    set_default(other_tenant)
    assert refusal(run, None, model=UNKNOWN, forecast=MOST) is RefusalCode.PRICE_UNKNOWN
    set_default(tenant)
    assert [asked(run, each).reserved for each in (UNKNOWN, KNOWN)] == [4, COLD]


@pytest.mark.parametrize("field", ["input_per_million", "output_per_million", "cache_read_per_million"])
def test_negative_price_is_refused_by_the_database(tenant: Any, field: str) -> None:
    with pytest.raises(Error):
        set_price(tenant, **{field: Decimal("-0.1")})


@pytest.mark.parametrize("model", ["builtin:grounded", "ollama:llama3", "gpt-4o", "openai:", "Open AI:x", "openai:a b"])
def test_price_is_for_a_model_that_can_cost(tenant: Any, model: str) -> None:
    row = ModelPrice(model=model, input_per_million=1, output_per_million=1)
    with pytest.raises(ValidationError):
        row.clean_fields(exclude=["tenant"])


def test_default_price_is_whole_or_none(tenant: Any) -> None:
    with pytest.raises(Error), tenant_scope(tenant):
        SpendingPolicy.objects.create(default_input=Decimal(1))


# What it really cost


def test_charge_is_by_the_price_that_the_run_was_admitted_with_and_counts_the_providers_cache(tenant: Any) -> None:
    set_price(tenant, price="1", cache_read_per_million=Decimal("0.1"))
    plain, cached = (asked(make_run(tenant)) for _ in range(2))
    set_price(tenant, price="9")
    assert charge(plain, 1_000_000) == 1
    assert charge(cached, 1_000_000, cache_read_tokens=500_000) == Decimal("0.55")


def test_charge_far_below_a_cent_keeps_its_digits(tenant: Any) -> None:
    set_price(tenant, price="0.001")
    run = make_run(tenant)
    charge(asked(run, forecast=Usage(input_tokens=1)), 1)
    assert money(run) == (Decimal("0.000000001"), Decimal(0))


@pytest.mark.parametrize(
    "usage", [{"unmeasured": 1}, {}, {"failed": "stalled"}], ids=["nothing reported", "zero reported", "failed"]
)
def test_charge_is_the_estimate_where_no_provider_counted_and_teaches_nothing(
    tenant: Any, usage: dict[str, Any]
) -> None:
    run = make_run(tenant)
    for _ in range(5):
        assert charge(asked(run), 0, **usage) == COLD
    assert reread(run).input_tokens == 5 * MOST.input_tokens
    assert reread(run).output_tokens == 5 * MOST.output_tokens
    assert estimate(tenant) == COLD
    with tenant_scope(tenant):
        assert not ToolCall.objects.filter(measured=True).exists()


def test_charge_of_estimated_tokens_teaches_no_later_estimate(tenant: Any) -> None:
    assert charge(asked(make_run(tenant)), 1_000_000, unmeasured=1) == LIST_PRICE[0]
    with tenant_scope(tenant):
        assert not ToolCall.objects.filter(measured=True).exists()


def test_call_dearer_than_its_estimate_is_charged_whole_and_closes_the_window(tenant: Any) -> None:
    budget, run = make_budget(tenant, "1"), make_run(tenant)
    charge(asked(run), 20_000_000)
    assert money(budget)[0] == 3
    forecast = Usage(input_tokens=1)
    assert refusal(run, None, model=KNOWN, forecast=forecast) is RefusalCode.GLOBAL_DAILY


def test_ledger_says_which_model_was_asked_what_for_and_the_run_counts_its_tokens(tenant: Any) -> None:
    run = make_run(tenant)
    charge(asked(run, purpose="planner"), 100, output_tokens=20)
    with tenant_scope(tenant):
        assert set(SpendEntry.objects.values_list("model", "purpose")) == {(KNOWN, "planner")}
    assert reread(run).input_tokens == 100
    assert reread(run).output_tokens == 20


# What is learned (contract autonomy A5)


@pytest.mark.parametrize(("runs", "expected"), [(0, "3"), (4, "3"), (5, "0.2"), (100, "0.2")])
def test_estimate_is_the_mean_of_enough_runs(runs: int, expected: str) -> None:
    assert rules.estimate_from_history(Decimal(3), runs, Decimal("0.2") if runs else None) == Decimal(expected)


def test_price_that_nobody_knows_stays_unknown_whatever_was_learned() -> None:
    assert rules.estimate_from_history(None, 100, Decimal("0.2")) is None


def test_estimate_learned_is_a_decimal_that_never_rounds_down(tenant: Any) -> None:
    make_history(make_run(tenant), *["0.01"] * 5, "0.02")
    assert asked(make_run(tenant)).reserved == Decimal("0.011666667")


def test_estimate_learns_from_what_its_providers_counted(tenant: Any) -> None:
    run = make_run(tenant)
    for _ in range(5):
        charge(asked(run), 1_000_000)
    assert asked(run).reserved == LIST_PRICE[0]


@pytest.mark.parametrize(
    "other",
    [{"model": UNKNOWN}, {"purpose": "planner"}, {"measured": False}, {"tenant": True}, {"older": True}],
    ids=["model", "purpose", "not measured", "another tenant", "older than thirty days"],
)
def test_estimate_learns_nothing_from_other_runs(tenant: Any, other_tenant: Any, other: dict[str, Any]) -> None:
    older, whose = other.pop("older", False), other_tenant if other.pop("tenant", False) else tenant
    make_history(make_run(whose), *["0.01"] * 5, **other)
    if older:
        with tenant_scope(tenant):
            ToolCall.objects.update(settled_at=Now() - timedelta(days=30, seconds=1))
    assert estimate(tenant) == COLD


def test_estimate_is_of_the_newest_hundred_under_the_present_price(tenant: Any) -> None:
    make_history(make_run(tenant), *["9"] * 3, *["0.01"] * NEWEST)
    assert estimate(tenant) == Decimal("0.01")
    set_price(tenant, price="1")
    assert estimate(tenant) == 2
