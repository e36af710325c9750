"""SQL statements that open and close calls and move money. Only the guard's services run them, under the run's lock.

A call, its run's counters and its money change in one transaction. Every statement that closes a call claims it by a
condition and returns whether it did.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

from django.db import connection

from apps.guard import rules
from apps.guard.alerts import send_budget_alerts
from apps.guard.enums import CallState, SpendKind
from apps.guard.locks import LOCK_BUDGETS_BY_ID
from apps.guard.schemas import ZERO, Admitted, BudgetAlert, BudgetFacts, BudgetRow
from kernel.tenancy import current_tenant_id

_log = logging.getLogger(__name__)

# Does not change the run if the effect key was used before.
_OPEN_CALL = """
    WITH opened AS (
        INSERT INTO guard_toolcall (id, tenant_id, run_id, seq, effect_key, intent, tool, model, args_digest, state,
                                    reserved, charged, tokens_reserved, error_code, deadline)
        VALUES (%(id)s, %(tenant)s, %(run)s, %(seq)s, %(effect_key)s, %(intent)s, %(tool)s, %(model)s, %(digest)s,
                'admitted', %(reserved)s, 0, %(tokens)s, '',
                statement_timestamp() + make_interval(secs => %(patience)s))
        ON CONFLICT (tenant_id, effect_key) DO NOTHING
        RETURNING run_id, reserved
    )
    UPDATE guard_guardedrun AS run
    SET seq = seq + 1, calls = calls + 1, cost_reserved = cost_reserved + opened.reserved
    FROM opened WHERE run.id = opened.run_id
"""
# Does not change the run if the call is already closed.
_CLOSE_CALL = """
    WITH closed AS (
        UPDATE guard_toolcall
        SET state = %(state)s, charged = %(charged)s, error_code = %(error_code)s, effect_key = %(effect_key)s,
            measured = %(measured)s, settled_at = statement_timestamp()
        WHERE id = %(id)s AND state = 'admitted'
        RETURNING run_id, reserved
    )
    UPDATE guard_guardedrun AS run
    SET cost_total = cost_total + %(charged)s, cost_reserved = cost_reserved - closed.reserved,
        input_tokens = input_tokens + %(input_tokens)s, output_tokens = output_tokens + %(output_tokens)s
    FROM closed WHERE run.id = closed.run_id
"""
_INSERT_SPEND = """
    INSERT INTO guard_spendentry (id, tenant_id, call_id, deployment_id, kind, intent, model, purpose, day, amount)
    VALUES (%(id)s, %(tenant)s, %(call)s, %(deployment)s, %(kind)s, %(intent)s, %(model)s, %(purpose)s, %(day)s,
            %(amount)s)
"""
_MOVE_BUDGETS = """
    UPDATE guard_budget AS budget
    SET reserved = moved.reserved, spent = moved.spent, alerted = moved.alerted, paused_in = moved.paused_in,
        window_start = moved.window_start
    FROM unnest(%s::uuid[], %s::numeric[], %s::numeric[], %s::smallint[], %s::date[], %s::date[])
         AS moved (id, reserved, spent, alerted, paused_in, window_start)
    WHERE budget.id = moved.id
"""
_MOVE_PLATFORM = "SELECT of_period, passed FROM guard_platform_move(%s, %s, %s, %s)"
_REACHED = """
    UPDATE guard_budget AS b
    SET reserved = CASE WHEN b.window_start = held.start THEN b.reserved ELSE 0 END,
        spent = CASE WHEN b.window_start = held.start THEN b.spent ELSE 0 END,
        alerted = 100, paused_in = held.start, window_start = held.start
    FROM unnest(%(budgets)s::uuid[], %(starts)s::date[]) AS held(id, start)
    WHERE b.id = held.id AND (b.window_start IS NULL OR b.window_start <= held.start)
"""
_GIVE_UP = """
    UPDATE guard_toolcall SET state = 'uncertain', error_code = %(error_code)s, settled_at = statement_timestamp()
    WHERE id = %(id)s AND state = 'admitted'
"""
# How long after a call's timeout it counts as lost: time for its settlement to arrive.
_GRACE_SECONDS = 60


def write_admission(admitted: Admitted, budgets: Sequence[BudgetRow], *, tokens: int = 0) -> bool:
    """Insert the call, count it, and reserve its price from the locked `budgets` and its model `tokens`. Returns False,
    and changes nothing, when its effect key has been used before."""
    call = admitted.call
    values = {
        "id": admitted.call_id,
        "tenant": current_tenant_id(),
        "run": admitted.run.run_id,
        "seq": admitted.seq,
        "effect_key": admitted.effect_key,
        "intent": admitted.intent.value,
        "tool": call.tool,
        "model": call.model[:120],
        "digest": call.digest,
        "reserved": admitted.reserved,
        "tokens": tokens,
        "patience": call.patience_seconds + _GRACE_SECONDS,
    }
    if not _execute(_OPEN_CALL, values).rowcount:
        return False
    if admitted.reserved:
        _move(admitted, SpendKind.RESERVE, budgets, reserved=admitted.reserved, spent=ZERO)
    return True


def write_uncertain(call_id: UUID, *, error_code: str) -> bool:
    """Mark the call as uncertain; its reservation stays. Returns False if the call is already closed."""
    values = {"id": call_id, "error_code": error_code[:60]}
    return bool(_execute(_GIVE_UP, values).rowcount)


@dataclass(frozen=True)
class Settlement:
    """How a call ends. `effect_free` frees the effect key, so that an approved call can be repeated."""

    state: CallState
    charged: Decimal
    error_code: str = ""
    effect_free: bool = False
    measured: bool = False
    input_tokens: int = 0
    output_tokens: int = 0


def write_settlement(admitted: Admitted, settlement: Settlement) -> bool:
    """Close the call and charge it. Returns False, and changes nothing, if it is already closed. Sends an alert for
    every threshold that the charge passes."""
    values = {
        "id": admitted.call_id,
        "state": settlement.state.value,
        "effect_key": f"{admitted.effect_key}#{admitted.call_id}" if settlement.effect_free else admitted.effect_key,
        "error_code": settlement.error_code[:60],
        "measured": settlement.measured,
        "charged": settlement.charged,
        "input_tokens": settlement.input_tokens,
        "output_tokens": settlement.output_tokens,
    }
    if not (settlement.charged or admitted.reserved):
        return bool(_execute(_CLOSE_CALL, values).rowcount)
    if not _execute(_CLOSE_CALL, values).rowcount:
        return False
    locked = _execute(LOCK_BUDGETS_BY_ID, [[budget_id for budget_id, _ in admitted.windows]])
    budgets = [BudgetRow(*row) for row in locked.fetchall()]
    alerts, platform = _move(admitted, SpendKind.SETTLE, budgets, reserved=-admitted.reserved, spent=settlement.charged)
    send_budget_alerts(alerts)
    for period, threshold in platform:
        _log.warning("platform_budget_alert period=%s threshold=%s", period, threshold)
    return True


def _move(
    admitted: Admitted, kind: SpendKind, budgets: Sequence[BudgetRow], *, reserved: Decimal, spent: Decimal
) -> tuple[list[BudgetAlert], list[tuple[str, int]]]:
    """Enter a movement in the ledger, in the locked budgets and in the installation's own budgets. Returns the
    thresholds that it passed: alerts of budgets, and (period, percent) of the installation's."""
    windows = dict(admitted.windows)
    moved = [
        (budget, changed)
        for budget in budgets
        if (changed := rules.apply_movement(budget, windows[budget.budget_id], reserved=reserved, spent=spent))
        is not None
    ]
    after = [row for _, row in moved]
    entry = {
        "id": uuid4(),
        "tenant": current_tenant_id(),
        "call": admitted.call_id,
        "deployment": admitted.deployment_id,
        "kind": kind.value,
        "intent": admitted.intent.value,
        "model": admitted.call.model[:120],
        "purpose": admitted.call.tool,
        "day": admitted.day,
        "amount": reserved + spent,
    }
    _execute(_INSERT_SPEND, entry)
    if after:
        columns = ("budget_id", "reserved", "spent", "alerted", "paused_in", "window_start")
        _execute(_MOVE_BUDGETS, [[getattr(row, column) for row in after] for column in columns])
    platform = _execute(_MOVE_PLATFORM, [reserved, spent, admitted.platform_day, list(rules.THRESHOLDS)])
    alerts = [alert for budget, changed in moved for alert in _alerts(budget, changed, windows[budget.budget_id])]
    return alerts, platform.fetchall() if spent else []


def write_limits_reached(budgets: Sequence[BudgetFacts]) -> None:
    """Record that the limits of these locked budgets are reached in their windows, which pauses what the tenant
    chose."""
    values = {"budgets": [budget.budget_id for budget in budgets], "starts": [budget.window for budget in budgets]}
    _execute(_REACHED, values)


def _alerts(before: BudgetRow, after: BudgetRow, window: date) -> list[BudgetAlert]:
    """Return an alert for each threshold that the movement has passed in this budget."""
    alerted = before.alerted if before.window_start == window else 0
    return [
        BudgetAlert(
            budget_id=after.budget_id,
            holder=rules.holder_of(after.deployment_id, after.visitor_ref, after.task_ref),
            ref=after.ref,
            period=after.period,
            window=window,
            threshold=threshold,
            spent=after.spent,
            limit=after.limit_usd,
        )
        for threshold in rules.THRESHOLDS
        if alerted < threshold <= after.alerted
    ]


def _execute(statement: str, values: Mapping[str, Any] | Sequence[Any]) -> Any:
    cursor = connection.cursor()
    cursor.execute(statement, values)
    return cursor
