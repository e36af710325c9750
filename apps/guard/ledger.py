"""The statements that move calls and money. Only the guard's services run them, under the run's lock.

A call, its run's counters and its money change in one statement (`moves_sql`), so that they cannot part. Every ending
claims by a condition and answers whether it did.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

from django.db import DatabaseError, connection

from apps.guard import rules
from apps.guard.alerts import tell
from apps.guard.enums import CallState
from apps.guard.known import KnownRun
from apps.guard.models import ToolCall
from apps.guard.moves_sql import TELL
from apps.guard.rules import holder_of
from apps.guard.schemas import Admitted, BudgetAlert, BudgetFacts
from kernel.tenancy.scope import current_tenant_id, gather_for_commit

_log = logging.getLogger(__name__)

_MONEY = (
    "%(entry)s, %(day)s::date, %(budgets)s::uuid[], %(starts)s::date[], %(platform_day)s::date, %(thresholds)s::int[]"
)
_ADMIT = f"""
    SELECT guard_admit(%(id)s, %(run)s, %(seq)s, %(effect_key)s, %(intent)s, %(tool)s, %(model)s, %(digest)s,
                       %(reserved)s, %(patience)s, {_MONEY})
"""
_ADMIT_AT_ONCE = """
    SELECT * FROM guard_admit_at_once(
        %(tenant)s, %(told)s, %(seen)s, %(zone)s, %(since)s, %(until)s, %(message)s, %(fence)s, %(visitor)s,
        %(most_committed)s, %(most_tokens)s, %(most_calls)s, %(most_seconds)s,
        %(id)s, %(run)s, %(intent)s, %(tool)s, %(digest)s, %(reserved)s, %(patience)s, %(day)s, %(platform_day)s)
"""
_SETTLEMENT = f"""%(id)s, %(state)s, %(effect_key)s, %(error_code)s, %(measured)s, %(charged)s, %(reserved)s,
                        %(input_tokens)s, %(output_tokens)s, {_MONEY}"""
_SETTLE = f"SELECT guard_settle({_SETTLEMENT})"
_SETTLE_AT_ONCE = f"SELECT guard_settle_at_once(%(tenant)s, %(told)s, {_SETTLEMENT})"
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
# How long after a call's own patience it counts as lost: time for its settlement to arrive.
_GRACE_SECONDS = 60


def write_admission(admitted: Admitted, *, tokens: int = 0, alone: bool = False) -> bool:
    """Insert the call, count it and reserve, also its model `tokens`; False when its effect key has been used before.
    The budgets that it reserves from are locked by then (`locks.lock_budgets`). `alone`: the scope ends with this, and
    what cannot have been used before leaves with COMMIT."""
    call = admitted.call
    values = {
        "id": admitted.call_id,
        "run": admitted.run.run_id,
        "seq": admitted.seq,
        "effect_key": admitted.effect_key,
        "intent": admitted.intent.value,
        "tool": call.tool,
        "model": call.model[:120],
        "digest": call.digest,
        "reserved": admitted.reserved,
        "patience": call.patience_seconds + _GRACE_SECONDS,
        **_money(admitted),
    }
    if alone and not tokens and admitted.effect_key == str(admitted.call_id):
        gather_for_commit(_admit_all, values)
        return True
    written = bool(_answer(_ADMIT, values))
    if written and tokens:
        ToolCall.objects.filter(pk=admitted.call_id).update(tokens_reserved=tokens)
    return written


def _admit_all(found: list[dict[str, Any]]) -> None:
    for values in found:
        _execute(_ADMIT, values)


def write_admission_at_once(
    admitted: Admitted, run: KnownRun, told: str, *, valid: tuple[datetime, datetime], days: tuple[date, date]
) -> Admitted | None:
    """Admit as a transaction by itself, with what the audit log is told. `valid`: the time for which the tenant's and
    the installation's `days` were found. None: nothing has happened, because something is not as remembered."""
    ref, call, room = admitted.run, admitted.call, rules.room(run.facts.limits, admitted.reserved)
    values = {
        "tenant": run.tenant_id,
        "told": told,
        "seen": run.seen,
        "zone": run.zone,
        "since": valid[0],
        "until": valid[1],
        "message": ref.lease and ref.lease.message_pk,
        "fence": ref.lease and ref.lease.fence,
        "visitor": ref.visitor,
        "most_committed": room.committed,
        "most_tokens": room.tokens,
        "most_calls": room.calls,
        "most_seconds": room.seconds,
        "id": admitted.call_id,
        "run": run.run_id,
        "intent": admitted.intent.value,
        "tool": call.tool,
        "digest": call.digest,
        "reserved": admitted.reserved,
        "patience": call.patience_seconds + _GRACE_SECONDS,
        "day": days[0],
        "platform_day": days[1],
    }
    seq, budgets, starts = _execute(_ADMIT_AT_ONCE, values).fetchone()
    if seq is None:
        return None
    if not admitted.reserved:
        return replace(admitted, seq=seq)
    windows = tuple(zip(budgets or (), starts or (), strict=True))
    return replace(admitted, seq=seq, day=days[0], platform_day=days[1], windows=windows)


def write_uncertain(call_id: UUID, *, error_code: str) -> bool:
    """Give the call up: its reservation stays where it is. False when somebody else closed it."""
    values = {"id": call_id, "error_code": error_code[:60]}
    return bool(_execute(_GIVE_UP, values).rowcount)


@dataclass(frozen=True)
class Settlement:
    """How a call ends. `effect_free` gives the effect key back."""

    state: CallState
    charged: Decimal
    error_code: str = ""
    effect_free: bool = False
    measured: bool = False
    input_tokens: int = 0
    output_tokens: int = 0


def write_settlement(admitted: Admitted, ended: Settlement) -> bool:
    """Close the call and charge it; False when somebody else closed it, and then nothing moves. Tells of every
    threshold that the charge has passed."""
    passed = _answer(_SETTLE, _settled(admitted, ended))
    if passed is None:
        return False
    tell(alert for row in passed["budgets"] for alert in _alerts(row))
    for period, threshold in passed["platform"]:
        _log.warning("platform_budget_alert period=%s threshold=%s", period, threshold)
    return True


def write_settlement_at_once(admitted: Admitted, ended: Settlement, told: str) -> bool | None:
    """The same as a transaction by itself, with what the audit log is told. None: nothing has happened, because
    somebody has to be told of a threshold."""
    values = {**_settled(admitted, ended), "tenant": current_tenant_id(), "told": told}
    try:
        return bool(_answer(_SETTLE_AT_ONCE, values) == "settled")
    except DatabaseError as error:
        if getattr(error.__cause__, "sqlstate", "") != TELL:
            raise
        return None


def _settled(admitted: Admitted, ended: Settlement) -> dict[str, Any]:
    key = f"{admitted.effect_key}#{admitted.call_id}" if ended.effect_free else admitted.effect_key
    return {
        "id": admitted.call_id,
        "state": ended.state.value,
        "effect_key": key,
        "error_code": ended.error_code[:60],
        "measured": ended.measured,
        "charged": ended.charged,
        "reserved": admitted.reserved,
        "input_tokens": ended.input_tokens,
        "output_tokens": ended.output_tokens,
        **_money(admitted),
    }


def _money(admitted: Admitted) -> dict[str, Any]:
    """Which windows of which budgets the call's money moves in."""
    return {
        "entry": uuid4(),
        "day": admitted.day,
        "budgets": [budget_id for budget_id, _ in admitted.windows],
        "starts": [start for _, start in admitted.windows],
        "platform_day": admitted.platform_day,
        "thresholds": list(rules.THRESHOLDS),
    }


def write_reached(budgets: Sequence[BudgetFacts]) -> None:
    """Note that the limits are reached in their windows, which pauses what the tenant wants paused. Locked by then."""
    values = {"budgets": [each.budget_id for each in budgets], "starts": [each.window for each in budgets]}
    _execute(_REACHED, values)


def _alerts(row: dict[str, Any]) -> list[BudgetAlert]:
    """One for each threshold that the movement passed in this budget."""
    ids = {name: row[name] and UUID(row[name]) for name in ("deployment_id", "visitor_ref", "task_ref")}
    new = (each for each in rules.THRESHOLDS if row["told"] < each <= row["alerted"])
    return [
        BudgetAlert(
            budget_id=UUID(row["id"]),
            holder=holder_of(ids["deployment_id"], ids["visitor_ref"], ids["task_ref"]),
            ref=UUID(row["ref"]),
            period=row["period"],
            window=date.fromisoformat(row["window_start"]),
            threshold=each,
            spent=Decimal(row["spent"]),
            limit=row["limit_usd"] and Decimal(row["limit_usd"]),
        )
        for each in new
    ]


def _answer(statement: str, values: dict[str, Any]) -> Any:
    return _execute(statement, values).fetchone()[0]


def _execute(statement: str, values: dict[str, Any]) -> Any:
    cursor = connection.cursor()
    cursor.execute(statement, values)
    return cursor
