"""Reaching a limit counts as having used it up."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.work.budgets import Budget, BudgetUsed

BUDGET = Budget()
LIMITS = {
    "tokens": 200_000,
    "cost_usd": Decimal("2.00"),
    "wall_time_seconds": 1800.0,
    "attempts": 5,
    "planner_calls": 3,
}


@pytest.mark.parametrize(("name", "limit"), LIMITS.items())
def test_budget_at_its_limit_is_exhausted(name: str, limit: Any) -> None:
    assert BudgetUsed(**{name: limit}).exhausted(BUDGET) == name


@pytest.mark.parametrize(("name", "limit"), LIMITS.items())
def test_budget_just_below_its_limit_is_not_exhausted(name: str, limit: Any) -> None:
    step = Decimal("0.000000001") if name == "cost_usd" else 1
    assert BudgetUsed(**{name: limit - step}).exhausted(BUDGET) == ""


def test_executor_runs_have_no_limit() -> None:
    assert BudgetUsed(executor_runs=10**6).exhausted(BUDGET) == ""


COUNTERS = st.builds(
    BudgetUsed,
    tokens=st.integers(0, 10**6),
    cost_usd=st.decimals(0, 100, places=9),
    wall_time_seconds=st.integers(0, 10**4).map(float),
    attempts=st.integers(0, 9),
    planner_calls=st.integers(0, 9),
    executor_runs=st.integers(0, 9),
)


@given(COUNTERS, COUNTERS)
def test_merge_adds_all_six_counters(mine: BudgetUsed, child: BudgetUsed) -> None:
    merged = mine.merge(child)
    assert all(getattr(merged, name) == getattr(mine, name) + getattr(child, name) for name in type(mine).model_fields)
