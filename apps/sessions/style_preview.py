"""Answer one question in several styles, to compare personalities before one is saved. Nothing is stored or sent.

Each answer is one guarded run of the chatbot's own model on what a visitor without identity would be answered from,
without tools, gates and memories. The built-in model has a style of its own and is not asked twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from apps.access.rules import PUBLIC, AccessController, Grant
from apps.guard import services as guard
from apps.guard.enums import Origin, Phase, RunStatus, TerminalReason
from apps.guard.schemas import Call, RunRef
from apps.knowledge.queries import join_neighbours, search_async
from apps.persona.rules import Axes
from apps.persona.services import tone_of_turn
from apps.sessions import policy
from apps.sessions.steps.answer import CONSTITUTION
from apps.sessions.steps.context import PASSAGES
from apps.tenants.models import Deployment
from apps.tenants.queries import deployment_by_id
from kernel.clock import now
from kernel.tenancy import in_scope
from llm import agents, pricing
from llm.briefing import Briefing, Passage
from llm.enums import Role
from llm.failures import ProviderFailed
from llm.models import is_builtin
from llm.runs import AgentRun, Usage
from llm.schemas import RouteDecision

LONGEST_QUESTION = 500
PURPOSE = "style_preview"
_PATIENCE_SECONDS = 120


@dataclass(frozen=True)
class Style:
    """The words of a persona, and the axes of a personality, None where it is off."""

    persona: str
    axes: Axes | None


@dataclass(frozen=True)
class StyledAnswer:
    """`instructions` is what the model read of the style. `failed` is the code of why the chatbot's model did not
    answer; `text` is then the built-in model's, or empty where the guard refused the run."""

    text: str
    instructions: str
    failed: str = ""


@dataclass(frozen=True)
class Comparison:
    """`follows`: whether the chatbot's model follows a style; the built-in one does not."""

    question: str
    model: str
    answers: tuple[StyledAnswer, ...]

    @property
    def follows(self) -> bool:
        return not is_builtin(self.model)


async def compare(tenant_id: UUID, deployment_id: UUID, question: str, styles: Sequence[Style]) -> Comparison:
    """The answer in each style, in order. Outside of any scope. Raises `NotFound` for a foreign deployment."""
    asked = " ".join(question.split())[:LONGEST_QUESTION]
    place, levels, run = await in_scope(tenant_id, _open, deployment_id)
    try:
        found = await search_async(tenant_id, asked, levels=levels, k=PASSAGES, run=run)
        passages = await in_scope(tenant_id, join_neighbours, found)
        answers = await asyncio.gather(
            *(_answer(tenant_id, place, run, _briefing(place, asked, passages, style)) for style in styles)
        )
    finally:
        await in_scope(
            tenant_id, guard.close_run, run.run_id, status=RunStatus.COMPLETED, reason=TerminalReason.COMPLETED
        )
    return Comparison(asked, place.model_for(Role.PROXY), tuple(answers))


def _open(deployment_id: UUID) -> tuple[Deployment, list[str], RunRef]:
    place = deployment_by_id(deployment_id)
    reached = AccessController(policy.load(place).levels, Grant(level=PUBLIC)).reached_levels()
    run = guard.open_run(Origin.WORK, place.pk, deployment_id=place.pk, phase=Phase.EXECUTION, critical=False, allow=())
    return place, list(reached), run.ref


def _briefing(place: Deployment, question: str, passages: tuple[Passage, ...], style: Style) -> Briefing:
    tone = None if style.axes is None else tone_of_turn(style.axes, {}, question).text
    return Briefing(
        role=Role.PROXY,
        text=question,
        title=place.title,
        greeting=place.greeting,
        persona="\n".join(filter(None, (style.persona, tone))),
        constitution=CONSTITUTION,
        passages=passages,
        suggestions=tuple(place.suggestions),
        today=now().date().isoformat(),
    )


async def _answer(tenant_id: UUID, place: Deployment, run: RunRef, briefing: Briefing) -> StyledAnswer:
    model = place.model_for(Role.PROXY)
    call = Call(
        tool=PURPOSE,
        model=model,
        forecast=pricing.estimate_usage(briefing),
        patience_seconds=_PATIENCE_SECONDS,
        optional=True,
    )

    async def ask() -> tuple[AgentRun[RouteDecision], Usage]:
        answered = await agents.run_proxy(model, briefing, key=place.keys.of(model))
        return answered, answered.usage

    try:
        answered = await guard.call_model(tenant_id, run, call, ask)
    except ProviderFailed as failure:
        return StyledAnswer("", briefing.persona, failure.reason)
    response = answered.output.response
    return StyledAnswer(response.message if response else "", briefing.persona, answered.reason)
