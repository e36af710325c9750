"""Estimate the cost of a model run: the mean of similar recent runs, or the most it may use while there are too few.

The price is the tenant's own if it set one, else the public list's, else the tenant's default. An unknown price is
None, even if earlier runs had a cost (contract autonomy A5, C). Nothing is cached in the process, so that processes
agree and a changed price applies at once."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_UP, Decimal
from typing import Any

from django.db import connection

from apps.guard import rules
from kernel.tenancy import current_tenant_id
from llm.pricing import Rates, is_free, price
from llm.runs import Usage

NEWEST, DAYS = 100, 30
# Runs from before a change of the price are ignored.
_QUERY = """
    SELECT own.input_per_million, own.output_per_million, own.cache_read_per_million, own.cache_write_per_million,
           policy.default_input, policy.default_output, lately.runs, lately.mean
    FROM (SELECT %(tenant)s::uuid AS id) AS tenant
    LEFT JOIN guard_modelprice own ON own.tenant_id = tenant.id AND own.model = %(model)s
    LEFT JOIN guard_spendingpolicy policy ON policy.tenant_id = tenant.id
    CROSS JOIN LATERAL (
        SELECT count(*) AS runs, avg(charged) AS mean FROM (
            SELECT charged FROM guard_toolcall
            WHERE tenant_id = tenant.id AND model = %(model)s AND tool = %(purpose)s AND measured
              AND settled_at > greatest(statement_timestamp() - make_interval(days => %(days)s), own.changed_at)
            ORDER BY settled_at DESC LIMIT %(newest)s
        ) AS newest
    ) AS lately
"""


@dataclass(frozen=True)
class Quote:
    """The expected cost of a run, None if unknown, and `rates`: the tenant's own price, None for the public one."""

    estimate: Decimal | None
    rates: Rates | None = None


def quote(model: str, purpose: str, forecast: Usage) -> Quote:
    """Estimate a run of `model` for `purpose` that uses at most `forecast`. Inside a scope."""
    if is_free(model):
        return Quote(Decimal(0))
    values: dict[str, Any] = {
        "tenant": current_tenant_id(),
        "model": model,
        "purpose": purpose,
        "days": DAYS,
        "newest": NEWEST,
    }
    with connection.cursor() as cursor:
        cursor.execute(_QUERY, values)
        *prices, default_input, default_output, runs, mean = cursor.fetchone()
    default = None if default_input is None else Rates(default_input, default_output)
    rates = Rates(*prices) if prices[0] is not None else None
    cold = price(model, forecast, rates=rates)
    if cold is None and default is not None:
        rates, cold = default, price(model, forecast, rates=default)
    return Quote(rules.estimate_from_history(cold, runs, mean), rates)


def round_up(amount: Decimal) -> Decimal:
    """Round an amount up to the digits of the ledger."""
    return amount.quantize(Decimal(1).scaleb(-rules.DIGITS), rounding=ROUND_UP)
