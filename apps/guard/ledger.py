"""The statements that move calls and money. Only the guard's services run them, under the run's lock.

A call and its run change in one statement, so that counters and calls cannot part; money that moves adds a second,
which touches every budget in the order of their ids. Every ending claims by a condition and answers whether it did.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

from django.db import connection

from apps.guard.enums import CallState, SpendKind
from apps.guard.schemas import ZERO, Admitted

_ADMIT = """
    WITH call AS (
        INSERT INTO guard_toolcall (id, tenant_id, run_id, seq, effect_key, intent, tool, args_digest, state, reserved,
                                    charged, error_code, deadline)
        VALUES (%(id)s, %(tenant)s, %(run)s, %(seq)s, %(effect_key)s, %(intent)s, %(tool)s, %(digest)s, 'admitted',
                %(reserved)s, 0, '', statement_timestamp() + make_interval(secs => %(patience)s))
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
            settled_at = statement_timestamp()
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
        INSERT INTO guard_spendentry (id, tenant_id, call_id, deployment_id, kind, intent, model, day, amount)
        VALUES (%(id)s, %(tenant)s, %(call)s, %(deployment)s, %(kind)s, %(intent)s, %(model)s, %(day)s, %(amount)s)
    ), held AS MATERIALIZED (
        SELECT b.id, w.start FROM guard_budget b JOIN unnest(%(budgets)s::uuid[], %(starts)s::date[]) AS w(id, start)
          ON w.id = b.id ORDER BY b.id FOR NO KEY UPDATE OF b
    )
    UPDATE guard_budget AS b
    SET reserved = %(reserved)s + CASE WHEN b.window_start = held.start THEN b.reserved ELSE 0 END,
        spent = %(spent)s + CASE WHEN b.window_start = held.start THEN b.spent ELSE 0 END,
        window_start = held.start
    FROM held WHERE b.id = held.id AND (b.window_start IS NULL OR b.window_start <= held.start)
"""
_GIVE_UP = """
    UPDATE guard_toolcall SET state = 'uncertain', error_code = %(error_code)s, settled_at = statement_timestamp()
    WHERE id = %(id)s AND state = 'admitted'
"""
# How long after a call's own patience it counts as lost: time for its settlement to arrive.
_GRACE_SECONDS = 60


def write_admission(admitted: Admitted) -> bool:
    """Insert the call, count it and reserve; False when its effect key has been used before."""
    call = admitted.call
    values = {
        "id": admitted.call_id,
        "tenant": admitted.run.tenant_id,
        "run": admitted.run.run_id,
        "seq": admitted.seq,
        "effect_key": admitted.effect_key,
        "intent": admitted.intent.value,
        "tool": call.tool,
        "digest": call.digest,
        "reserved": admitted.reserved,
        "patience": call.patience_seconds + _GRACE_SECONDS,
    }
    if not _ran(_ADMIT, values):
        return False
    if admitted.reserved:
        _move(admitted, SpendKind.RESERVE, reserved=admitted.reserved, spent=ZERO)
    return True


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
    input_tokens: int = 0,
    output_tokens: int = 0,
) -> bool:
    """Close the call and charge it; False when somebody else closed it. `effect_free` gives the effect key back."""
    key = f"{admitted.effect_key}#{admitted.call_id}" if effect_free else admitted.effect_key
    values = {
        "id": admitted.call_id,
        "state": state.value,
        "charged": charged,
        "error_code": error_code[:60],
        "effect_key": key,
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
    }
    if not _ran(_SETTLE, values):
        return False
    if charged or admitted.reserved:
        _move(admitted, SpendKind.SETTLE, reserved=-admitted.reserved, spent=charged)
    return True


def _move(admitted: Admitted, kind: SpendKind, *, reserved: Decimal, spent: Decimal) -> None:
    """Enter the movement in the ledger and in its budgets' windows; a window that is over stays as it was."""
    values = {
        "id": uuid4(),
        "tenant": admitted.run.tenant_id,
        "call": admitted.call_id,
        "deployment": admitted.deployment_id,
        "kind": kind.value,
        "intent": admitted.intent.value,
        "model": admitted.call.model,
        "day": admitted.day,
        "amount": reserved + spent,
        "budgets": [budget_id for budget_id, _ in admitted.windows],
        "starts": [start for _, start in admitted.windows],
        "reserved": reserved,
        "spent": spent,
    }
    with connection.cursor() as cursor:
        cursor.execute(_MOVE, values)


def _ran(statement: str, values: dict[str, Any]) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return bool(cursor.rowcount)
