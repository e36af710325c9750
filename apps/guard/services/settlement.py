"""How does an admitted call end? Settled once, with what it really cost; its effect commits with the settlement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from apps.guard.enums import CallOutcomeLabel, CallState
from apps.guard.estimates import rounded
from apps.guard.ledger import Settlement, write_settlement, write_uncertain
from apps.guard.locks import today, windows_of
from apps.guard.schemas import Admitted
from apps.guard.services.admission import record_call
from kernel import fault_points
from kernel.errors import SilasError


class CallLost(SilasError):
    """The call was given up as lost before its settlement came; what the settlement would have done is undone."""

    def __init__(self) -> None:
        super().__init__("call_lost", "This call was given up before it ended.", status=409)


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

    The effect comes first, so that its rows are locked before the guard's own; if the call is not ours to close any
    more, `CallLost` rolls the effect back.
    """
    charged = admitted.reserved if cost is None else rounded(cost)
    if charged and not admitted.reserved:
        day, platform_day = today()
        windows = windows_of(admitted.spends_from, day)
        admitted = replace(admitted, day=day, platform_day=platform_day, windows=windows)
    if on_settle is not None:
        on_settle()
    ended = Settlement(state, charged, error_code, effect_free, measured, input_tokens, output_tokens)
    if not write_settlement(admitted, ended):
        raise CallLost
    record_call(admitted, _label(state), charged=charged)
    # The last moment at which a process can die and the call is open: behind it lies the COMMIT.
    fault_points.reach("guard.before_settle")
    return charged


def _label(state: CallState) -> CallOutcomeLabel:
    return CallOutcomeLabel.SUCCESS if state is CallState.EXECUTED else CallOutcomeLabel.ERROR


def give_up(admitted: Admitted, *, error_code: str) -> None:
    """Nobody knows whether it had its effect: the call is uncertain, keeps its reservation and is never made again."""
    if not write_uncertain(admitted.call_id, error_code=error_code):
        raise CallLost
    record_call(admitted, CallOutcomeLabel.UNCERTAIN)
