"""Hold a model to its output schema: one try, one repair with the validation error, then the role's fixed answer
(spec 5.1.0).

Never more than two tries, both with the same limits. Pure control flow: it knows no provider and no tool.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from llm.enums import InteractionMode, InteractionRegister, Role
from llm.failures import ShapeBroken
from llm.schemas import AgentResponse, ExecutorAgentOutput, ModelAnswer, RouteDecision

T = TypeVar("T")
_SORRY = "Sorry, I could not put my answer into words just now. Please ask me again, or ask for a person."
_NO_PLAN = "Sorry, I could not prepare this properly, so nothing was changed. Please try again, or ask for a person."


@dataclass(frozen=True)
class RepairedOutput(Generic[T]):
    """`output` is None if both tries were invalid."""

    output: T | None
    repaired: bool


async def run_with_repair(prompt: str, attempt: Callable[[str], Awaitable[T]]) -> RepairedOutput[T]:
    try:
        return RepairedOutput(await attempt(prompt), repaired=False)
    except ShapeBroken as broken:
        repair = f"{prompt}\n\n[SCHEMA VALIDATION ERROR]\n{broken.summary}"
    try:
        return RepairedOutput(await attempt(repair), repaired=True)
    except ShapeBroken:
        return RepairedOutput(None, repaired=True)


def fallback_output(role: Role, *, context_profile: str) -> ModelAnswer:
    """The fixed answer of a role whose model was invalid twice. An executor's try has then failed as well."""
    match role:
        case Role.PROXY:
            return RouteDecision(
                route="direct",
                reason="structured_output_invalid",
                interaction_register=InteractionRegister.STATUS,
                interaction_mode=InteractionMode.CONFIRM_ONLY_WHEN_REQUIRED,
                context_profile=context_profile,
                response=AgentResponse(message=_SORRY),
            )
        case Role.PLANNER:
            return AgentResponse(message=_NO_PLAN)
        case Role.EXECUTOR:
            return ExecutorAgentOutput(summary="The work was not carried out: the model's report could not be read.")
