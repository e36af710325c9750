"""Settle admitted calls: once each, with the real cost; the effect commits with the settlement.

`settle` and `charge` are for model runs, which their callers make themselves after `admit`, inside scopes of their own,
so that a chat turn needs no extra transaction. A call whose process died becomes uncertain, keeps its reservation, and
is never made again: one recurring message of the whole installation looks for overdue calls of all tenants.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.functions import Now

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus.deliveries import Delivery
from apps.guard import rules
from apps.guard.enums import CallOutcomeLabel, CallState, SpendKind
from apps.guard.estimates import round_up
from apps.guard.ledger import CLOSE_CALL, write_call
from apps.guard.locks import current_days, lock_budgets_again
from apps.guard.models import ToolCall
from apps.guard.queries import tenants_with_lost_calls
from apps.guard.schemas import Admitted
from apps.guard.services.admission import record_call
from kernel import fault_points
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.tenancy import for_each_tenant, in_tenant_scope, in_thread
from llm.pricing import price
from llm.runs import Usage

_LOST_CALLS_EVERY = timedelta(minutes=1)


class CallLost(SilasError):
    """The call was given up as lost before its settlement came, which is rolled back."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.CALL_LOST, "This call was given up before it ended.")


def settle(call: Admitted, *, cost: Decimal | None, failed: str = "") -> Decimal:
    """Settle a model run without a usage from its provider; with one, call `charge` instead.

    `cost` None charges the estimate, `failed` names the kind of error. Returns the charge. Raises `CallLost` if the run
    took longer than `patience_seconds` and was given up.
    """
    return settle_call(call, CallState.ERROR if failed else CallState.EXECUTED, cost=cost, error_code=failed)


def charge(call: Admitted, usage: Usage, *, failed: str = "") -> Decimal:
    """Settle a model run by its tokens, at the price with which it was admitted.

    A run that asked its provider but has no count or estimate of tokens is charged what was reserved for it, in money
    and in tokens. Later estimates use only what a provider counted. Returns the charge. Raises `CallLost` as `settle`
    does."""
    if usage.requests and not usage.input_tokens and not rules.uses_no_tokens(call.call.model):
        forecast = call.call.forecast or Usage()
        usage = replace(
            usage, input_tokens=forecast.input_tokens, output_tokens=max(forecast.output_tokens, usage.output_tokens)
        )
        cost = None
    else:
        cost = price(call.call.model, usage, rates=call.rates)
    return settle_call(
        call,
        CallState.ERROR if failed else CallState.EXECUTED,
        cost=cost,
        error_code=failed,
        measured=bool(cost) and not usage.unmeasured and not failed,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
    )


def settle_call(
    admitted: Admitted,
    state: CallState,
    *,
    cost: Decimal | None,
    on_settle: Callable[[], None] | None = None,
    error_code: str = "",
    effect_free: bool = False,
    measured: bool = False,
    input_tokens: int = 0,
    output_tokens: int = 0,
) -> Decimal:
    """Close the call inside the caller's scope; returns what was charged. `cost` None charges the estimate,
    `effect_free` frees the effect key, so that an approved call can be repeated.

    The effect comes first, so that its rows are locked before the guard's own. If the call was closed meanwhile,
    `CallLost` rolls the effect back.
    """
    charged = admitted.reserved if cost is None else round_up(cost)
    if on_settle is not None:
        on_settle()
    if charged and not admitted.reserved:
        day, platform_day = current_days()
        admitted = replace(admitted, day=day, platform_day=platform_day)
    values = {
        "state": state.value,
        "effect_key": f"{admitted.effect_key}#{admitted.call_id}" if effect_free else admitted.effect_key,
        "error_code": error_code[:60],
        "measured": measured,
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
    }
    budgets = lock_budgets_again(admitted) if charged or admitted.reserved else []
    if not write_call(CLOSE_CALL, values, admitted, SpendKind.SETTLE, budgets, spent=charged):
        raise CallLost
    outcome = CallOutcomeLabel.SUCCESS if state is CallState.EXECUTED else CallOutcomeLabel.ERROR
    record_call(admitted, outcome, charged=charged)
    # If the process dies before here, the call is still open: the COMMIT follows.
    fault_points.reach("guard.before_settle")
    return charged


def give_up_call(admitted: Admitted, *, error_code: str) -> None:
    """Give up a call of which it is unknown whether it had its effect. Raises `CallLost` if it is closed already."""
    if not _mark_uncertain(admitted.call_id, error_code):
        raise CallLost
    record_call(admitted, CallOutcomeLabel.UNCERTAIN)


def abandon_calls(run_id: UUID) -> int:
    """Give up every call of this run that is under way, because its worker is gone; returns how many."""
    return _give_up(ToolCall.objects.filter(run_id=run_id, state=CallState.ADMITTED))


def mark_lost_calls() -> int:
    """Give up every call whose deadline has passed; returns how many. Inside a scope. A settlement that comes later
    gets `CallLost`."""
    return _give_up(ToolCall.objects.filter(deadline__lte=Now(), state=CallState.ADMITTED))


async def handle_lost_calls(delivery: Delivery) -> None:
    """Handle the `lost_calls` message."""
    tenants = await in_thread(tenants_with_lost_calls)
    await in_thread(for_each_tenant, tenants, in_tenant_scope(mark_lost_calls))
    await delivery.reschedule(lambda: now() + _LOST_CALLS_EVERY)


def _give_up(lost: QuerySet[ToolCall]) -> int:
    calls = [call for call in lost if _mark_uncertain(call.pk, "lost")]
    for call in calls:
        data = {"intent": call.intent, "outcome": CallOutcomeLabel.UNCERTAIN.value, "seq": call.seq}
        record(AuditEvent.TOOL_CALL, subject=f"run:{call.run_id}", data=data)
    return len(calls)


def _mark_uncertain(call_id: UUID, error_code: str) -> bool:
    """Mark the call, which keeps its reservation and is never repeated; False if it is closed already."""
    under_way = ToolCall.objects.filter(pk=call_id, state=CallState.ADMITTED)
    return bool(under_way.update(state=CallState.UNCERTAIN, error_code=error_code, settled_at=Now()))
