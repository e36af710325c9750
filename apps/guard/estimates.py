"""What will a model run cost? What runs like it cost lately; before there were enough of them, the most it may use.

One query and one rule. The price is the tenant's own where it set one, else the public list's, else the tenant's
default; a price that nobody knows is None, whatever was learned before (contract autonomy A5, C). Nothing is kept in
the process: another process, or a price that changed a moment ago, would make two estimates of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_UP, Decimal
from typing import Any

from django.db import connection

from apps.guard import rules
from kernel.llm.pricing import Rates, is_free, price
from kernel.llm.runs import Usage
from kernel.tenancy import current_tenant_id

NEWEST, DAYS = 100, 30
# Runs under a price that has changed since say nothing of what the next will cost.
_ASK = """
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
    """What a run is expected to cost, None when nobody knows; `rates`: the tenant's price, None for the public one."""

    estimate: Decimal | None
    rates: Rates | None = None


def quote(model: str, purpose: str, forecast: Usage) -> Quote:
    """The estimate for a run of `model` for `purpose` that uses `forecast` at most. Inside a scope."""
    if is_free(model):
        return Quote(Decimal(0))
    asked: dict[str, Any] = {
        "tenant": current_tenant_id(),
        "model": model,
        "purpose": purpose,
        "days": DAYS,
        "newest": NEWEST,
    }
    with connection.cursor() as cursor:
        cursor.execute(_ASK, asked)
        *prices, default_input, default_output, runs, mean = cursor.fetchone()
    default = None if default_input is None else Rates(default_input, default_output)
    rates = Rates(*prices) if prices[0] is not None else None
    cold = price(model, forecast, rates=rates)
    if cold is None and default is not None:
        rates, cold = default, price(model, forecast, rates=default)
    return Quote(rules.learned(cold, runs, mean), rates)


def rounded(amount: Decimal) -> Decimal:
    """An amount as the ledger holds it; what is beyond its last digit counts as a whole one."""
    return amount.quantize(Decimal(1).scaleb(-rules.DIGITS), rounding=ROUND_UP)
