"""SQL statements that open and close calls and move money. Only the guard's services run them, under the run's lock.

A call, its run's counters and its money change in one statement, or not at all: `write_call` returns whether it opened
or closed the call.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import uuid4

from django.db import connection

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.guard import rules, signals
from apps.guard.enums import Holder, SpendKind
from apps.guard.schemas import ZERO, Admitted, BudgetFacts
from kernel.tenancy import current_tenant_id

_log = logging.getLogger(__name__)

# Does not change the run if the effect key was used before.
OPEN_CALL = """
    WITH call AS (
        INSERT INTO guard_toolcall (id, tenant_id, run_id, seq, effect_key, intent, tool, model, args_digest, state,
                                    reserved, charged, tokens_reserved, error_code, deadline)
        VALUES (%(id)s, %(tenant)s, %(run)s, %(seq)s, %(effect_key)s, %(intent)s, %(tool)s, %(model)s, %(digest)s,
                'admitted', %(reserved)s, 0, %(tokens)s, '',
                statement_timestamp() + make_interval(secs => %(patience)s))
        ON CONFLICT (tenant_id, effect_key) DO NOTHING
        RETURNING run_id
    ), counted AS (
        UPDATE guard_guardedrun AS run
        SET seq = seq + 1, calls = calls + 1, cost_reserved = cost_reserved + %(reserved)s
        FROM call WHERE run.id = call.run_id
    )"""
# Does not change the run if the call is already closed.
CLOSE_CALL = """
    WITH call AS (
        UPDATE guard_toolcall
        SET state = %(state)s, charged = %(spent)s, error_code = %(error_code)s, effect_key = %(effect_key)s,
            measured = %(measured)s, settled_at = statement_timestamp()
        WHERE id = %(id)s AND state = 'admitted'
        RETURNING run_id
    ), counted AS (
        UPDATE guard_guardedrun AS run
        SET cost_total = cost_total + %(spent)s, cost_reserved = cost_reserved + %(reserved)s,
            input_tokens = input_tokens + %(input_tokens)s, output_tokens = output_tokens + %(output_tokens)s
        FROM call WHERE run.id = call.run_id
    )"""
# After one of the two: enters the movement of the call that it opened or closed, in the locked budgets too, and in the
# installation's own.
_MOVE = """, entered AS (
        INSERT INTO guard_spendentry (id, tenant_id, call_id, deployment_id, kind, intent, model, purpose, day, amount)
        SELECT %(entry)s, %(tenant)s, %(id)s, %(deployment)s, %(kind)s, %(intent)s, %(model)s, %(tool)s, %(day)s,
               %(reserved)s + %(spent)s
        FROM call
    ), moved AS (
        UPDATE guard_budget AS budget
        SET reserved = new.reserved, spent = new.spent, alerted = new.alerted, paused_in = new.paused_in,
            window_start = new.window_start
        FROM call, json_to_recordset(%(budgets)s::json)
             AS new (id uuid, reserved numeric, spent numeric, alerted smallint, paused_in date, window_start date)
        WHERE budget.id = new.id
    )
    SELECT of_period, passed
    FROM call LEFT JOIN guard_platform_move(%(reserved)s, %(spent)s, %(platform_day)s, %(thresholds)s) ON true
"""


def write_call(
    statement: str,
    values: Mapping[str, Any],
    admitted: Admitted,
    kind: SpendKind,
    budgets: Sequence[BudgetFacts],
    *,
    spent: Decimal = ZERO,
) -> bool:
    """Open or close the call, with its movement of money in the locked `budgets`. Sends an alert for every threshold
    that `spent` passes. False, with nothing changed, if the effect key has been used before or the call is closed."""
    call, reserved = admitted.call, admitted.reserved if kind is SpendKind.RESERVE else -admitted.reserved
    values = {
        **values,
        "id": admitted.call_id,
        "tenant": current_tenant_id(),
        "run": admitted.run.run_id,
        "intent": admitted.intent.value,
        "tool": call.tool,
        "model": call.model[:120],
        "reserved": reserved,
        "spent": spent,
    }
    with connection.cursor() as cursor:
        # A free call moves no money: its caller locked no budgets, and the ledger gets no entry.
        if not (reserved or spent):
            cursor.execute(f"{statement} SELECT FROM call", values)
            return bool(cursor.rowcount)
        moved = [rules.apply_movement(budget, reserved=reserved, spent=spent) for budget in budgets]
        movement = {
            "entry": uuid4(),
            "deployment": admitted.deployment_id,
            "kind": kind.value,
            "day": admitted.day,
            "platform_day": admitted.platform_day,
            "thresholds": list(rules.THRESHOLDS),
            "budgets": json.dumps([_columns(budget) for budget in moved], default=str),
        }
        cursor.execute(statement + _MOVE, values | movement)
        passed = cursor.fetchall()
    if not passed:
        return False
    for before, after in zip(budgets, moved, strict=True):
        send_alerts(after, above=before.alerted)
    # The installation's budget is its operator's: told in the log, never to a tenant.
    for period, threshold in passed if spent else ():
        if threshold:
            _log.warning("platform_budget_alert period=%s threshold=%s", period, threshold)
    return True


def _columns(budget: BudgetFacts) -> dict[str, object]:
    return {
        "id": budget.budget_id,
        "reserved": budget.reserved,
        "spent": budget.spent,
        "alerted": budget.alerted,
        "paused_in": budget.paused_in,
        "window_start": budget.window,
    }


def send_alerts(budget: BudgetFacts, *, above: int) -> None:
    """Record and announce each threshold that the budget has passed, beyond those up to `above`. Visitors' own budgets
    send no alerts, because there are as many as visitors."""
    for threshold in rules.THRESHOLDS if budget.holder != Holder.VISITOR else ():
        if above < threshold <= budget.alerted:
            data = {"holder": budget.holder, "period": budget.period, "percent": threshold}
            record(AuditEvent.BUDGET_ALERT, subject=f"budget:{budget.budget_id}", data=data)
            signals.budget_alert(budget, threshold)
