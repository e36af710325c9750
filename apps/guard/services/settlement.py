"""Settle admitted calls: once each, with the real cost; the effect commits with the settlement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from apps.guard.enums import CallOutcomeLabel, CallState
from apps.guard.estimates import round_up
from apps.guard.ledger import Settlement, write_settlement, write_uncertain
from apps.guard.locks import current_days, windows_for
from apps.guard.schemas import Admitted
from apps.guard.services.admission import record_call
from kernel import fault_points
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError


class CallLost(SilasError):
    """The call was given up as lost before its settlement came, which is rolled back."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.CALL_LOST, "This call was given up before it ended.")


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
    """Close the call inside the caller's scope; returns what was charged. `cost` None charges the estimate.

    The effect comes first, so that its rows are locked before the guard's own. If the call was closed meanwhile,
    `CallLost` rolls the effect back.
    """
    charged = admitted.reserved if cost is None else round_up(cost)
    if charged and not admitted.reserved:
        day, platform_day = current_days()
        windows = windows_for(admitted.budget_refs, day)
        admitted = replace(admitted, day=day, platform_day=platform_day, windows=windows)
    if on_settle is not None:
        on_settle()
    ended = Settlement(state, charged, error_code, effect_free, measured, input_tokens, output_tokens)
    if not write_settlement(admitted, ended):
        raise CallLost
    outcome = CallOutcomeLabel.SUCCESS if state is CallState.EXECUTED else CallOutcomeLabel.ERROR
    record_call(admitted, outcome, charged=charged)
    # If the process dies before here, the call is still open: the COMMIT follows.
    fault_points.reach("guard.before_settle")
    return charged


def mark_uncertain(admitted: Admitted, *, error_code: str) -> None:
    """Give up a call of which it is unknown whether it had its effect: it keeps its reservation and is never
    repeated."""
    if not write_uncertain(admitted.call_id, error_code=error_code):
        raise CallLost
    record_call(admitted, CallOutcomeLabel.UNCERTAIN)
