"""Let gates ask a model: each question is a model run that is admitted, made and settled, so that its cost is visible.

Gates run in a thread and wait, while the model run is async, on the caller's loop. A `GateJudge` is created once a turn
or attempt and passed to its gates in their `Allowance`; gates themselves know nothing of money or models.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from apps.guard.enums import Intent
from apps.guard.schemas import Admitted, Call, RunRef
from apps.guard.services.admission import admit
from apps.guard.services.settlement import charge
from kernel.tenancy import in_scope
from llm.judge import Judgement, Opinion, Question, Ruling, prompt_size
from llm.keys import ProviderKeys
from llm.pricing import estimate_tokens
from llm.runs import Usage

# For the admission and the settlement around the model's own limit.
_GRACE_SECONDS = 10.0


class JudgeUnavailable(Exception):
    """No model run was made: the guard refused it, there were too many, or its price is unknown."""


@dataclass(frozen=True)
class GateJudge:
    """Asks `model` (or the one that the question names) for one guarded run. Called in a thread, never on the loop."""

    run: RunRef
    model: str
    loop: asyncio.AbstractEventLoop
    keys: ProviderKeys = ProviderKeys()
    base_url: str | None = None
    # Decides whether this model may be asked now (rate limit); None for no limit.
    may_ask: Callable[[str], Awaitable[bool]] | None = None

    def __call__(self, question: Question) -> Opinion | Ruling:
        """Raises `NotAsked`, `ProviderFailed`, `ShapeBroken`, `TimeoutError`; `RuntimeError` on the loop itself, which
        would wait for itself."""
        if asyncio._get_running_loop() is self.loop:
            raise RuntimeError("a gate's question must be asked in a thread")
        answer = asyncio.run_coroutine_threadsafe(self._ask(question), self.loop)
        try:
            return answer.result(question.seconds + _GRACE_SECONDS)
        except TimeoutError:
            answer.cancel()
            raise

    async def _ask(self, question: Question) -> Opinion | Ruling:
        model = question.model or self.model
        if self.may_ask is not None and not await self.may_ask(model):
            raise JudgeUnavailable
        forecast = Usage(input_tokens=estimate_tokens(prompt_size(question)), output_tokens=question.max_tokens)
        call = Call(tool="gate", model=model, forecast=forecast, patience_seconds=question.seconds * 4, optional=True)
        admitted = await in_scope(self.run.tenant_id, admit, self.run, Intent.CONVERSE, call)
        if not isinstance(admitted, Admitted):
            raise JudgeUnavailable
        judgement, failed = Judgement(question), ""
        try:
            return await judgement.ask(model, key=self.keys.of(model), base_url=self.base_url)
        # Not `Exception`: a question that is cancelled must be settled with its failure as well.
        except BaseException as error:
            failed = type(error).__name__[:60]
            raise
        finally:
            await in_scope(self.run.tenant_id, charge, admitted, judgement.usage, failed=failed)
