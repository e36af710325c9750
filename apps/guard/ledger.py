"""The statements that move calls and money. Only the guard's services run them, under the run's lock.

A call and its run change in one statement, so that counters and calls cannot part; money that moves adds a second,
which touches every budget in the order of their ids. Every ending claims by a condition and answers whether it did.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

from django.db import connection, transaction

from apps.guard import rules
from apps.guard.alerts import tell
from apps.guard.enums import CallState, SpendKind
from apps.guard.rules import holder_of
from apps.guard.schemas import ZERO, Admitted, BudgetAlert, BudgetFacts
from kernel.tenancy.rows import Question, ask

_log = logging.getLogger(__name__)

_ADMIT = """
    WITH call AS (
        INSERT INTO guard_toolcall (id, tenant_id, run_id, seq, effect_key, intent, tool, model, args_digest, state,
                                    reserved, charged, error_code, deadline)
        VALUES (%(id)s, %(tenant)s, %(run)s, %(seq)s, %(effect_key)s, %(intent)s, %(tool)s, %(model)s, %(digest)s,
                'admitted', %(reserved)s, 0, '', statement_timestamp() + make_interval(secs => %(patience)s))
        ON CONFLICT (tenant_id, effect_key) DO NOTHING
        RETURNING run_id
    )
    UPDATE guard_guardedrun AS run
    SET seq = run.seq + 1, calls = run.calls + 1, cost_reserved = run.cost_reserved + %(reserved)s
    FROM call WHERE run.id = call.run_id
"""
_SETTLE = """
    WITH call AS (
        UPDATE guard_toolcall
        SET state = %(state)s, charged = %(charged)s, error_code = %(error_code)s, effect_key = %(effect_key)s,
            measured = %(measured)s, settled_at = statement_timestamp()
        WHERE id = %(id)s AND state = 'admitted'
        RETURNING run_id, reserved
    )
    UPDATE guard_guardedrun AS run
    SET cost_total = run.cost_total + %(charged)s, cost_reserved = run.cost_reserved - call.reserved,
        input_tokens = run.input_tokens + %(input_tokens)s, output_tokens = run.output_tokens + %(output_tokens)s
    FROM call WHERE run.id = call.run_id
"""
_MOVE = """
    WITH entry AS (
        INSERT INTO guard_spendentry (id, tenant_id, call_id, deployment_id, kind, intent, model, purpose, day,
                                      amount)
        VALUES (%(id)s, %(tenant)s, %(call)s, %(deployment)s, %(kind)s, %(intent)s, %(model)s, %(purpose)s, %(day)s,
                %(amount)s)
    ), held AS MATERIALIZED (
        SELECT b.id, w.start, b.limit_usd, CASE WHEN b.window_start = w.start THEN b.alerted ELSE 0 END AS told,
               %(spent)s + CASE WHEN b.window_start = w.start THEN b.spent ELSE 0 END AS now_spent
        FROM guard_budget b JOIN unnest(%(budgets)s::uuid[], %(starts)s::date[]) AS w(id, start)
          ON w.id = b.id ORDER BY b.id FOR NO KEY UPDATE OF b
    )
    UPDATE guard_budget AS b
    SET reserved = %(reserved)s + CASE WHEN b.window_start = held.start THEN b.reserved ELSE 0 END,
        spent = held.now_spent,
        alerted = greatest(held.told, held.level),
        paused_in = CASE WHEN held.level = 100 AND held.told < 100 THEN held.start ELSE b.paused_in END,
        window_start = held.start
    FROM (
        SELECT id, start, told, now_spent, guard_level(now_spent, limit_usd, %(thresholds)s) AS level FROM held
    ) AS held WHERE b.id = held.id AND (b.window_start IS NULL OR b.window_start <= held.start)
    RETURNING b.id, b.ref, b.deployment_id, b.visitor_ref, b.task_ref, b.period, b.window_start, b.spent, b.limit_usd,
              held.told, b.alerted
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
_NOTHING: Question[bool] = Question("SELECT 1", [], bool)
# How long after a call's own patience it counts as lost: time for its settlement to arrive.
_GRACE_SECONDS = 60


def write_admission(admitted: Admitted) -> bool:
    """Insert the call, count it and reserve; False when its effect key has been used before. The budgets that it
    reserves from are locked by then (`locks.lock_budgets`)."""
    call = admitted.call
    values = {
        "id": admitted.call_id,
        "tenant": admitted.run.tenant_id,
        "run": admitted.run.run_id,
        "seq": admitted.seq,
        "effect_key": admitted.effect_key,
        "intent": admitted.intent.value,
        "tool": call.tool,
        "model": call.model[:120],
        "digest": call.digest,
        "reserved": admitted.reserved,
        "patience": call.patience_seconds + _GRACE_SECONDS,
    }
    if not admitted.reserved:
        return _ran(_ADMIT, values)
    if admitted.effect_key != str(admitted.call_id):  # may have been used: nothing moves before that is known
        return _ran(_ADMIT, values) and _move(admitted, SpendKind.RESERVE, reserved=admitted.reserved, spent=ZERO)
    began = Question(f"{_ADMIT} RETURNING run.id", values, bool)
    return _move(admitted, SpendKind.RESERVE, reserved=admitted.reserved, spent=ZERO, after=began)


def write_uncertain(call_id: UUID, *, error_code: str) -> bool:
    """Give the call up: its reservation stays where it is. False when somebody else closed it."""
    values = {"id": call_id, "error_code": error_code[:60]}
    return _ran(_GIVE_UP, values)


def write_settlement(
    admitted: Admitted,
    *,
    state: CallState,
    charged: Decimal,
    error_code: str = "",
    effect_free: bool = False,
    measured: bool = False,
    input_tokens: int = 0,
    output_tokens: int = 0,
) -> bool:
    """Close the call and charge it; False when somebody else closed it, and then nothing of this transaction stays.
    `effect_free` gives the effect key back."""
    key = f"{admitted.effect_key}#{admitted.call_id}" if effect_free else admitted.effect_key
    values = {
        "id": admitted.call_id,
        "state": state.value,
        "charged": charged,
        "measured": measured,
        "error_code": error_code[:60],
        "effect_key": key,
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
    }
    if not charged and not admitted.reserved:
        return _ran(_SETTLE, values)
    closed = Question(f"{_SETTLE} RETURNING run.id", values, bool)
    if _move(admitted, SpendKind.SETTLE, reserved=-admitted.reserved, spent=charged, after=closed):
        return True
    transaction.set_rollback(True)  # the money has moved by now; this transaction cannot commit any more
    return False


def _move(
    admitted: Admitted, kind: SpendKind, *, reserved: Decimal, spent: Decimal, after: Question[bool] = _NOTHING
) -> bool:
    """Enter the movement in the ledger and in its budgets' windows; a window that is over stays as it was. Tells
    of every threshold that it passed. `after` travels with it and goes first; what it answers is answered, and where
    that is no, the caller has to undo all of it."""
    values = {
        "id": uuid4(),
        "tenant": admitted.run.tenant_id,
        "call": admitted.call_id,
        "deployment": admitted.deployment_id,
        "kind": kind.value,
        "intent": admitted.intent.value,
        "model": admitted.call.model[:120],
        "purpose": admitted.call.tool[:120],
        "day": admitted.day,
        "amount": reserved + spent,
        "budgets": [budget_id for budget_id, _ in admitted.windows],
        "starts": [start for _, start in admitted.windows],
        "reserved": reserved,
        "spent": spent,
        "thresholds": list(rules.THRESHOLDS),
    }
    did, alerts, passed = ask(
        after,
        Question(_MOVE, values, _alerts),
        Question(_MOVE_PLATFORM, [reserved, spent, admitted.platform_day, list(rules.THRESHOLDS)], list),
    )
    tell(alerts)
    for period, threshold in passed:
        _log.warning("platform_budget_alert period=%s threshold=%s", period, threshold)
    return bool(did)


def write_reached(budgets: Sequence[BudgetFacts]) -> None:
    """Note that the limits are reached in their windows, which pauses what the tenant wants paused. Locked by then."""
    values = {"budgets": [each.budget_id for each in budgets], "starts": [each.window for each in budgets]}
    _ran(_REACHED, values)


def _alerts(rows: list[tuple[Any, ...]]) -> list[BudgetAlert]:
    """One for each threshold that this movement passed."""
    found = []
    for budget_id, ref, deployment, visitor, task, period, window, spent, limit, told, level in rows:
        holder = holder_of(deployment, visitor, task)
        new = (each for each in rules.THRESHOLDS if told < each <= level)
        found += [BudgetAlert(budget_id, holder, ref, period, window, each, spent, limit) for each in new]
    return found


def _ran(statement: str, values: dict[str, Any]) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return bool(cursor.rowcount)
