"""Run models in a turn within the guard's budgets: admitted before, settled with the actual cost.

A free model's first run is admitted in the turn's opening transaction, a priced one's when its prompt is known; all are
settled in the closing one. A reached budget, or too many runs within a minute, sends the conversation to
`builtin:grounded` instead of leaving it without an answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from apps.guard import services as guard
from apps.guard.enums import Intent, RefusalCode
from apps.guard.schemas import Admitted, Call, NeedsApproval, Refused
from apps.sessions.ratelimit import limits
from apps.sessions.state import ModelCharge, Stop, TurnState
from kernel.language import gettext_lazy
from kernel.tenancy import in_scope
from llm import pricing
from llm.agents import AgentRun
from llm.briefing import Briefing
from llm.enums import Role
from llm.models import GROUNDED

Output = TypeVar("Output")
Ask = Callable[[str], Awaitable[AgentRun[Output]]]

TOO_OFTEN = "asked_too_often"
STOPPED = gettext_lazy("This conversation was stopped by our team. A colleague will take a look.")
_WITHOUT_MODEL = frozenset(
    {
        RefusalCode.COST_CAP_REACHED,
        RefusalCode.GLOBAL_DAILY,
        RefusalCode.GLOBAL_MONTHLY,
        RefusalCode.PRICE_UNKNOWN,
        RefusalCode.BUDGET_TOKENS,
    }
)
MODEL_PATIENCE_SECONDS = 300.0


def model_of(state: TurnState, role: Role) -> str:
    return state.settings.model_for(role)


def admit_free(state: TurnState) -> None:
    """Inside the opening transaction: admit the proxy's run when its model costs nothing."""
    model = model_of(state, Role.PROXY)
    if pricing.is_free(model):
        call = Call(tool=Role.PROXY.value, model=model, estimate=pricing.ZERO, patience_seconds=MODEL_PATIENCE_SECONDS)
        state.admitted = guard.admit(state.run, Intent.CONVERSE, call)


async def converse(state: TurnState, role: Role, briefing: Briefing, ask: Ask[Output]) -> AgentRun[Output] | Stop:
    """One model run for this turn. Raises what the run raises; then its reservation is charged as an error."""
    model = model_of(state, role)
    if not await limits.may_ask(state.tenant_id, state.session.pk, model):
        state.fell_back, model = TOO_OFTEN, GROUNDED
    admitted = await _admitted(state, role, model, briefing)
    if isinstance(admitted, Refused) and admitted.code in _WITHOUT_MODEL and model != GROUNDED:
        state.fell_back, model = admitted.code.value, GROUNDED
        admitted = await _admitted(state, role, model, briefing)
    if not isinstance(admitted, Admitted):
        return Stop(f"guard:{_code(admitted)}", STOPPED, wants_person=True)
    return await _run(state, admitted, model, ask)


async def _run(state: TurnState, admitted: Admitted, model: str, ask: Ask[Output]) -> AgentRun[Output]:
    try:
        answered = await ask(model)
    # A cancelled request may have reached the provider, and cancellation is no `Exception`.
    except BaseException as error:
        state.charges.append(ModelCharge(admitted, failed=type(error).__name__[:60]))
        raise
    state.charges.append(ModelCharge(admitted, answered.usage))
    # A model that asks for what it was not offered may have been talked into it: an auditor sees that.
    for tool in answered.wishes:
        await in_scope(state.tenant_id, guard.record_unoffered_tool, state.run, Intent.RUN_SKILL, tool)
    state.model_name = answered.answered_by
    state.prompts += (answered.prompt,) if answered.prompt else ()
    if answered.fell_back:
        state.fell_back = answered.reason or "provider_failed"
    return answered


def settle(state: TurnState) -> None:
    """Inside the turn's last transaction: charge every model run; one that was never begun costs nothing."""
    if isinstance(state.admitted, Admitted):
        guard.settle(state.admitted, cost=pricing.ZERO, failed="not_begun")
    for ended in state.charges:
        if ended.usage is None:
            guard.settle(ended.admitted, cost=None, failed=ended.failed)
        else:
            guard.charge(ended.admitted, ended.usage, failed=ended.failed)


async def _admitted(state: TurnState, role: Role, model: str, briefing: Briefing) -> Admitted | Refused | NeedsApproval:
    if role is Role.PROXY and state.admitted is not None:
        admitted, state.admitted = state.admitted, None
        return admitted
    forecast = pricing.estimate_usage(briefing)
    call = Call(tool=role.value, model=model, forecast=forecast, patience_seconds=MODEL_PATIENCE_SECONDS)
    return await in_scope(state.tenant_id, guard.admit, state.run, Intent.CONVERSE, call)


def _code(outcome: object) -> str:
    return outcome.code.value if isinstance(outcome, Refused) else "approval"
