"""Measure the cost of keeping a model's window within its budget.

Goals: `enforce_budget` over 5,000 items, p95 at most 15 ms; a mixed window in which all rules have work to
do (a third are tool results to mask, groups, acknowledgements, three zones above their room). Beside it the least that
such a rule could do: count every text once. The window of an ordinary turn is shown without a promise.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from bench.report import Row

ITEMS, ORDINARY = 5_000, 16
ROUNDS, WARM = 200, 20
MOST_MS = 15.0


def run() -> list[Row]:
    large, small = _measured(ITEMS), _measured(ORDINARY)
    return [
        _row(f"enforce_budget, {ITEMS:,} items, p95", *large, bound=f"≤ {MOST_MS:g} ms", holds=large[0] <= MOST_MS),
        _row(f"enforce_budget, {ORDINARY} items, p95", *small),
    ]


def _row(name: str, value: float, counted: float, *, bound: str = "", holds: bool | None = None) -> Row:
    return Row(name, value, "ms", "count every text", counted, value / counted, bound, holds)


def _measured(count: int) -> tuple[float, float]:
    """p95 in ms of the rules, and of one count; they take turns, so that a noisy second hurts both."""
    from llm.context.budget import TokenBudget, count_tokens
    from llm.context.rules import enforce_budget

    items, budget = _items(count), TokenBudget()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(WARM + ROUNDS):
        times[0].append(_timed(lambda: enforce_budget(items, budget=budget, profile="conversation", turn=count)))
        times[1].append(_timed(lambda: sum(count_tokens(item.content) for item in items)))
    ours, counted = (sorted(spent[WARM:])[int(ROUNDS * 0.95)] for spent in times)
    return ours, counted


def _items(count: int) -> tuple[Any, ...]:
    from llm.context.enums import Kind, Zone
    from llm.context.items import ContextItem

    zones = (Zone.CHRONICLE, Zone.CHRONICLE, Zone.MEMORY, Zone.WORKSPACE)
    kinds = (Kind.MESSAGE, Kind.TOOL_RESULT, Kind.PLAN)
    return tuple(
        ContextItem(
            str(at),
            zones[at % 4],
            kinds[at % 3],
            "ok" if at % 9 == 0 else "A sentence as people write them. " * (1 + at % 12),
            turn=at,
            source="visitor",
            group=f"call {at // 2}" if at % 10 < 4 else "",
            relevance=at * 37 % 100 / 100,
            finished=at % 5 == 0,
            tool="claim_status",
        )
        for at in range(count)
    )


def _timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1000
