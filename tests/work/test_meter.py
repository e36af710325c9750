"""The budget is checked before every action, and reaching a limit counts as having used it up."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from apps.work.budgets import Budget, BudgetUsed
from apps.work.meter import BudgetExhausted, Meter


def clock(*times: float) -> Any:
    moments: Iterator[float] = iter(times)
    return lambda: next(moments)


def gone(used: BudgetUsed, *times: float) -> str:
    meter = Meter(Budget(max_wall_time_seconds=10), used, clock(0.0, *times))
    try:
        meter.require()
    except BudgetExhausted as stop:
        return stop.counter
    return ""


@pytest.mark.parametrize(
    ("used", "seconds", "counter"),
    [
        (BudgetUsed(), 9.9, ""),
        (BudgetUsed(), 10.0, "wall_time_seconds"),
        (BudgetUsed(wall_time_seconds=9.0), 1.0, "wall_time_seconds"),
        (BudgetUsed(wall_time_seconds=9.0), 0.5, ""),
        (BudgetUsed(tokens=200_000), 0.0, "tokens"),
        (BudgetUsed(tokens=199_999), 0.0, ""),
        (BudgetUsed(cost_usd=Decimal(2)), 0.0, "cost_usd"),
        (BudgetUsed(attempts=5, planner_calls=3), 0.0, ""),
    ],
)
def test_meter_stops_at_the_limit(used: BudgetUsed, seconds: float, counter: str) -> None:
    assert gone(used, seconds) == counter


def test_meter_knows_what_is_left() -> None:
    meter = Meter(Budget(max_wall_time_seconds=10), BudgetUsed(tokens=150_000, wall_time_seconds=4), clock(0.0, 1.0))
    assert meter.tokens_left == 50_000
    assert meter.seconds_left == 5.0
