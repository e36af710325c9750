"""Admit and charge model runs, which their callers make themselves, between `admit` and `charge` or `settle`.

Each of these runs inside the caller's scope, so that a chat turn needs no extra transaction. Only for model runs: tools
go through `guarded_call`.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from apps.guard import rules
from apps.guard.enums import CallState, Intent
from apps.guard.rules import MODEL_RUNS
from apps.guard.schemas import Admitted, Call, NeedsApproval, Refused, RunRef
from apps.guard.services.admission import admit_call
from apps.guard.services.settlement import settle_call
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from llm.pricing import price
from llm.runs import Usage


def admit(run: RunRef, intent: Intent, call: Call) -> Admitted | Refused | NeedsApproval:
    """Check R5 → R6 → R4 and reserve the price, in the caller's scope. A refusal is recorded when that scope
    commits."""
    if intent not in MODEL_RUNS:
        raise SilasError(ErrorCode.NOT_A_MODEL_RUN, gettext("Only the guard carries this out."))
    return admit_call(run, intent, call)


def settle(
    call: Admitted, *, cost: Decimal | None, input_tokens: int = 0, output_tokens: int = 0, failed: str = ""
) -> Decimal:
    """Settle a model run without a usage from its provider; with one, call `charge` instead.

    `cost` None charges the estimate, `failed` names the kind of error. Returns the charge. Raises `CallLost` if the run
    took longer than `patience_seconds` and was given up.
    """
    state = CallState.ERROR if failed else CallState.EXECUTED
    return settle_call(
        call, state, cost=cost, error_code=failed, input_tokens=input_tokens, output_tokens=output_tokens
    )


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
    counted = cost is not None and not usage.unmeasured
    state = CallState.ERROR if failed else CallState.EXECUTED
    return settle_call(
        call,
        state,
        cost=cost,
        error_code=failed,
        measured=counted and not failed and bool(cost),
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
    )
