"""Budgets of work items and their use. Reaching a limit counts as having used it up (contract silas 5.1). Pure."""

from __future__ import annotations

from decimal import Decimal

from pydantic import BaseModel, ConfigDict, Field


class Budget(BaseModel):
    """Limits of a work item."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_tokens: int = Field(default=200_000, gt=0)
    max_cost_usd: float = Field(default=2.0, gt=0, le=1_000_000)
    max_wall_time_seconds: int = Field(default=1800, gt=0)
    max_attempts: int = Field(default=5, gt=0)
    max_planner_calls: int = Field(default=3, gt=0)


class BudgetUsed(BaseModel):
    """What a work item has used so far."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tokens: int = 0
    cost_usd: Decimal = Decimal(0)
    wall_time_seconds: float = 0.0
    attempts: int = 0
    planner_calls: int = 0
    executor_runs: int = 0

    def merge(self, child: BudgetUsed) -> BudgetUsed:
        """Return the sum over all six counters."""
        names = BudgetUsed.model_fields
        return BudgetUsed(**{name: getattr(self, name) + getattr(child, name) for name in names})

    def exhausted(self, budget: Budget, *, ignoring: frozenset[str] = frozenset()) -> str:
        """Return the first counter that has reached its limit, or "". `ignoring`: counters to skip."""
        limits = {
            "tokens": budget.max_tokens,
            # Through text: the float itself would bring its binary digits into the comparison.
            "cost_usd": Decimal(str(budget.max_cost_usd)),
            "wall_time_seconds": budget.max_wall_time_seconds,
            "attempts": budget.max_attempts,
            "planner_calls": budget.max_planner_calls,
        }
        return next(
            (name for name, limit in limits.items() if name not in ignoring and getattr(self, name) >= limit), ""
        )
