"""Ask a model which groups of an overfull window are worth least; the rules never wait for it.

Spec 5.7: two seconds, three failures in a row open the breaker for five minutes, and without a verdict the rules go on
alone. A verdict is only a suggestion: pinned blocks stay, groups leave whole, and a text that argues for itself inside
of its block can at most keep itself a little longer.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from llm import prompts
from llm.context.budget import TokenBudget
from llm.context.items import ContextItem, Window
from llm.context.rules import evictable, first_tier, second_tier
from llm.failures import ProviderFailed, translate_errors
from llm.models import model_span, open_model
from llm.output_repair import run_with_repair
from llm.render import block, label
from llm.schemas import ScorerOutput

if TYPE_CHECKING:
    from pydantic_ai import Agent
    from pydantic_ai.models import Model

SECONDS = 2.0
FAILURES, COOL_DOWN = 3, 300.0
# What a scorer reads of one block: enough to know what it is about.
EXCERPT = 400
_STUMBLES = (AttributeError, LookupError, TypeError, ValueError)

Ask = Callable[[str], Awaitable[ScorerOutput | None]]


class Breaker:
    """Open after `failures` in a row, for `cool_down` seconds; then one more failure opens it again."""

    def __init__(
        self, *, failures: int = FAILURES, cool_down: float = COOL_DOWN, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most, self._cool_down, self._clock = failures, cool_down, clock
        self._failed, self._opened_at = 0, 0.0

    @property
    def is_open(self) -> bool:
        return self._failed >= self._most and self._clock() - self._opened_at < self._cool_down

    def succeeded(self) -> None:
        self._failed = 0

    def failed(self) -> None:
        self._failed += 1
        self._opened_at = self._clock()


class Scorer:
    """One model behind one breaker; shared by all windows of a process, which loses nothing with it."""

    def __init__(self, ask: Ask, *, breaker: Breaker | None = None, seconds: float = SECONDS) -> None:
        self._ask, self._seconds = ask, seconds
        self._breaker = breaker or Breaker()

    async def verdict(self, prompt: str) -> ScorerOutput | None:
        """None when there is none: too late, failed, shapeless twice, or not asked at all."""
        if self._breaker.is_open:
            return None
        try:
            async with asyncio.timeout(self._seconds):
                output = await self._ask(prompt)
        except (TimeoutError, ProviderFailed, *_STUMBLES):
            output = None
        if output is None:
            self._breaker.failed()
        else:
            self._breaker.succeeded()
        return output


def model_scorer(model_name: str, *, key: str | None = None, base_url: str | None = None) -> Ask:
    """Ask this model (llm.models), with the one repair of spec 5.1.0. Raises `ProviderFailed`."""

    async def ask(prompt: str) -> ScorerOutput | None:
        with model_span(model_name):
            async with open_model(model_name, key=key, base_url=base_url) as model:
                return (await run_with_repair(prompt, lambda text: _try(model, text))).output

    return ask


async def enforce_with_scorer(
    items: Sequence[ContextItem],
    *,
    budget: TokenBudget,
    profile: str,
    turn: int,
    scorer: Scorer,
    goal: str = "",
    reserved: int = 0,
) -> Window:
    """Both tiers; the scorer is asked only when the first was not enough. Raises what `rules.first_tier` raises."""
    window = first_tier(items, budget=budget, profile=profile, turn=turn, reserved=reserved)
    if window.total <= budget.evict_above:
        return window
    verdict = await scorer.verdict(build_prompt(window, goal=goal))
    if verdict is None:
        return second_tier(window, budget=budget)
    keep = {ctx_id for group in verdict.keep_groups for ctx_id in group.block_ids}
    return second_tier(window, budget=budget, evict=[group.block_ids for group in verdict.evict_groups], keep=keep)


def build_prompt(window: Window, *, goal: str) -> str:
    """The goal and every block that may leave, each where its content cannot leave it."""
    return "\n\n".join(
        (
            block("current goal | untrusted", goal[:EXCERPT]),
            *(_block(item) for group in evictable(window) for item in group),
        )
    )


def _block(item: ContextItem) -> str:
    heading = (item.ctx_id, item.zone.value, item.kind.value, f"turn {item.turn}", f"{item.token_count} tokens")
    return block(" | ".join(map(label, heading)), item.content[:EXCERPT])


@functools.cache
def _agent() -> Agent[None, ScorerOutput]:
    from pydantic_ai import Agent

    instructions = prompts.current("scorer").filled()
    return Agent(output_type=ScorerOutput, instructions=instructions, retries={"output": 0}, name="Scorer")


async def _try(model: Model, prompt: str) -> ScorerOutput:
    from pydantic_ai import UsageLimits
    from pydantic_ai.settings import ModelSettings

    settings = ModelSettings(max_tokens=1000, max_retries=0, timeout=SECONDS)
    with translate_errors():
        run = await _agent().run(
            prompt, model=model, model_settings=settings, usage_limits=UsageLimits(request_limit=1)
        )
    return run.output
