"""Bring a turn's window within its budget: by rules, and by a scorer model where they are not enough.

A deployment may name a model for the role `scorer`. It is asked only when the first tier leaves the window above its
threshold, through the guard like every model run, for two seconds at most, behind a circuit breaker per tenant and
model. Without its verdict the rules decide alone.
"""

from __future__ import annotations

from functools import lru_cache
from uuid import UUID

from apps.guard import services as guard
from apps.guard.enums import Intent
from apps.guard.schemas import Admitted, Call
from apps.sessions import window
from apps.sessions.ratelimit import limits
from apps.sessions.state import ModelCharge, TurnState
from kernel.tenancy import in_scope
from llm import pricing
from llm.briefing import Briefing
from llm.context.items import Window
from llm.context.rules import enforce_budget
from llm.context.scorer import SECONDS, Ask, Breaker, Scorer, enforce_with_scorer, model_scorer
from llm.enums import Role
from llm.models import is_builtin
from llm.schemas import ScorerOutput

SCORER = "scorer"


async def enforced(state: TurnState) -> Window:
    """Raises `context_pinned_too_large`."""
    items, how = window.laid_out(state)
    model = state.settings.model_for(SCORER)
    if is_builtin(model):
        return enforce_budget(items, **how)
    key = state.session.deployment.keys.of(model)
    scorer = Scorer(_admitted(state, model, model_scorer(model, key=key)), breaker=_breaker(state.tenant_id, model))
    return await enforce_with_scorer(items, **how, scorer=scorer, goal=state.text)


@lru_cache(maxsize=1024)
def _breaker(tenant_id: UUID, model: str) -> Breaker:
    """One in a process for each tenant's model: who asked too often does not wait again for the next visitor."""
    return Breaker()


def _admitted(state: TurnState, model: str, ask: Ask) -> Ask:
    """`ask` between the guard's two halves; a refusal is no verdict."""

    async def asked(prompt: str) -> ScorerOutput | None:
        if not await limits.may_ask(state.tenant_id, state.session.pk, model):
            return None
        forecast = pricing.estimate_usage(Briefing(role=Role.PROXY, text=prompt))
        call = Call(tool=SCORER, model=model, forecast=forecast, patience_seconds=2 * SECONDS, optional=True)
        admitted = await in_scope(state.tenant_id, guard.admit, state.run, Intent.CONVERSE, call)
        if not isinstance(admitted, Admitted):
            return None
        try:
            told = await ask(prompt)
        except BaseException as error:
            state.charges.append(ModelCharge(admitted, failed=type(error).__name__[:60]))
            raise
        state.charges.append(ModelCharge(admitted))
        return told

    return asked
