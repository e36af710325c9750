"""One try at a model: stream it, follow its text, let it call tools through the restricted toolset.

All tries of a run share what the visitor saw, what the tools returned and what was spent. Only `agents` calls this.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, ModelRequestNode, UsageLimits
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.usage import RunUsage

from llm.attachments import content_of, readable_types
from llm.briefing import Briefing
from llm.enums import Role
from llm.failures import ProviderFailed, translate_errors
from llm.models import model_span
from llm.offline.model import GroundedSettings, first_move, grounded_model, pieces
from llm.offline.moves import CallTool
from llm.output_repair import RepairedOutput, run_with_repair
from llm.render import render
from llm.runs import Limits, Timeouts, Usage
from llm.schemas import AgentResponse, ExecutorAgentOutput, ModelAnswer, RouteDecision
from llm.streaming import MessageStream, OnDelta, StreamedText, planner_message, proxy_message
from llm.toolsets import CallLedger, restrict_toolset
from llm.usage_estimates import called_tools, estimate_unreported

Answer = ModelAnswer | DeferredToolRequests
_READERS = {Role.PROXY: proxy_message, Role.PLANNER: planner_message, Role.EXECUTOR: None}
_SDK_RETRIES = 1


def _agent(output: type[ModelAnswer]) -> Agent[Briefing, Any]:
    """Build a role's agent without output retries: the repair of spec 5.1.0 is the only one.

    An output ends the run before other calls run.
    """
    return Agent(
        output_type=[output, DeferredToolRequests],
        deps_type=Briefing,
        retries={"tools": 1, "output": 0},
        end_strategy="early",
        validation_context=lambda ctx: {"context_profiles": ctx.deps.context_profiles},
        name=output.__name__,
    )


_AGENTS = {
    Role.PROXY: _agent(RouteDecision),
    Role.PLANNER: _agent(AgentResponse),
    Role.EXECUTOR: _agent(ExecutorAgentOutput),
}


_ANSWER = "final_result"


class Attempts:
    """The tries of one run over `briefing`; `toolset` is the caller's."""

    def __init__(
        self,
        briefing: Briefing,
        on_delta: OnDelta | None,
        toolset: AbstractToolset[Any] | None,
        limits: Limits,
        patience: Timeouts,
    ) -> None:
        self.briefing = briefing
        self._shown = StreamedText(on_delta)
        self._toolset = toolset
        self._ledger = CallLedger()
        self._limits = limits
        self._patience = patience
        self._spent = RunUsage()
        self.wishes: list[str] = []

    async def run(self, model: Model[Any]) -> RepairedOutput[Answer]:
        """Raises `ProviderFailed`."""
        instructions, prompt = render(self.briefing, readable_types(model.model_name))
        return await run_with_repair(prompt, lambda text: self._try(model, instructions, text))

    async def run_grounded(self) -> RepairedOutput[Answer]:
        """Run `builtin:grounded`; an answer that needs no tool is returned without starting an agent."""
        move = first_move(self.briefing)
        if isinstance(move, CallTool):
            return await self.run(grounded_model())
        await self._tell(move.output)
        return RepairedOutput(move.output, repaired=False)

    async def _tell(self, output: ModelAnswer) -> None:
        reader = _READERS[self.briefing.role]
        message = reader(output.model_dump()) if reader else None
        text = ""
        for piece in pieces(message) if isinstance(message, str) else ():
            text += piece
            await self._shown.grow(text)

    @property
    def usage(self) -> Usage:
        return Usage.of(self._spent)

    async def _try(self, model: Model[Any], instructions: str, prompt: str) -> Answer:
        self._ledger.begin_try()
        usage, unreported = RunUsage(), RunUsage()
        try:
            with translate_errors(), estimate_unreported(unreported) as messages:
                try:
                    return await self._stream(model, instructions, prompt, usage)
                finally:
                    # Of a try that failed as well: what it asked for matters, not how it ended.
                    self.wishes += [name for name in called_tools(messages) if self._is_a_wish(name)]
        finally:
            if model is not grounded_model():
                self._spent += usage + unreported

    def _is_a_wish(self, tool: str) -> bool:
        """Whether a called tool is neither one of this run's tools nor the model family's output tool."""
        return not tool.startswith(_ANSWER) and all(tool != offered.name for offered in self.briefing.tools)

    async def _stream(self, model: Model[Any], instructions: str, prompt: str, usage: RunUsage) -> Answer:
        agent = _AGENTS[self.briefing.role]
        run_in_order = Agent.parallel_tool_call_execution_mode("sequential")
        opened = agent.iter(
            content_of(prompt, self.briefing.attachments, readable_types(model.model_name)),
            model=model,
            instructions=instructions,
            deps=self.briefing,
            toolsets=[restrict_toolset(self._toolset, self.briefing, self._ledger)],
            model_settings=self._settings(model),
            usage_limits=self._usage_limits(),
            usage=usage,
        )
        with run_in_order:
            async with opened as run:
                async for node in run:
                    if Agent.is_model_request_node(node):
                        with model_span(f"{model.system}:{model.model_name}") as span:
                            before_in, before_out = usage.input_tokens, usage.output_tokens
                            await self._follow(_events(node, run.ctx, model))
                            span.set(
                                input_tokens=usage.input_tokens - before_in,
                                output_tokens=usage.output_tokens - before_out,
                            )
        assert run.result is not None
        output: Answer = run.result.output
        return output

    async def _follow(self, events: AsyncGenerator[object]) -> None:
        follower = MessageStream(self._shown, _READERS[self.briefing.role])
        async with aclosing(events):
            async for event in events:
                await follower.feed(event)

    def _settings(self, model: Model[Any]) -> ModelSettings:
        if model is grounded_model():
            return GroundedSettings(silas_briefing=self.briefing)
        return ModelSettings(
            max_tokens=self._limits.max_tokens,
            max_retries=_SDK_RETRIES,
            timeout=self._patience.between_tokens,
            first_event_timeout=self._patience.first_token,
            request_timeout=self._patience.request,
        )

    def _usage_limits(self) -> UsageLimits:
        limits = self._limits
        return UsageLimits(
            request_limit=limits.requests,
            tool_calls_limit=limits.tool_calls,
            total_tokens_limit=limits.total_tokens,
        )


async def _events(node: ModelRequestNode[Any, Any], ctx: Any, model: Model[Any]) -> AsyncGenerator[object]:
    """One model response. What a provider's client cannot make sense of is a failure of the provider."""
    stumbles = () if model is grounded_model() else (AttributeError, LookupError, TypeError, ValueError)
    try:
        async with node.stream(ctx) as events:
            async for event in events:
                yield event
    except stumbles as error:
        raise ProviderFailed("unreadable_response") from error
