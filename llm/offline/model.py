"""`builtin:grounded` as a pydantic-ai model. It reads the briefing from its settings, never from the prompt's text.

It streams its answer in pieces of a few words, waits for nothing, and costs nothing.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from typing import cast

from pydantic_ai.messages import ModelMessage, ModelRequest, RetryPromptPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from pydantic_ai.settings import ModelSettings

from kernel.canonical import canonical_json
from llm.briefing import Briefing
from llm.enums import Role
from llm.models import GROUNDED
from llm.offline import executor, languages, planner, proxy
from llm.offline.moves import CallTool, Move, ToolResult

_PIECE_LENGTH = 24
_NextMove = Callable[[Briefing, Sequence[ToolResult], Collection[str]], Move]
_ROLES: dict[Role, _NextMove] = {
    Role.PROXY: proxy.next_move,
    Role.PLANNER: planner.next_move,
}


class GroundedSettings(ModelSettings, total=False):
    """The one setting of this model: its briefing."""

    silas_briefing: Briefing


@functools.cache
def grounded_model() -> FunctionModel:
    return FunctionModel(stream_function=_respond, model_name=GROUNDED)


def first_move(briefing: Briefing) -> Move:
    """The move before any tool has run, assuming that the briefing's tools are available."""
    return _next(briefing, (), {tool.name for tool in briefing.tools})


def _next(briefing: Briefing, done: Sequence[ToolResult], available: Collection[str]) -> Move:
    """Decide the next move in English and translate it to the visitor's language. An executor has no visitor."""
    if briefing.role is Role.EXECUTOR:
        return executor.next_move(briefing, done, available)
    language = languages.briefing_language(briefing)
    move = _ROLES[briefing.role](languages.briefing_in_english(briefing, language), done, available)
    return languages.translate_move(move, language)


async def _respond(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[DeltaToolCalls]:
    briefing = cast(GroundedSettings, info.model_settings)["silas_briefing"]
    done = _results(messages)
    available = {tool.name for tool in info.function_tools} & {tool.name for tool in briefing.tools}
    move = _next(briefing, done, available)
    if isinstance(move, CallTool):
        yield {0: DeltaToolCall(move.tool, canonical_json(move.args), tool_call_id=f"call-{len(done) + 1}")}
        return
    yield {0: DeltaToolCall(info.output_tools[0].name, tool_call_id="output")}
    for piece in pieces(move.output.model_dump_json(exclude_unset=True)):
        yield {0: DeltaToolCall(json_args=piece)}


def pieces(text: str) -> Iterator[str]:
    """Cut `text` after spaces into pieces of a few words."""
    start = 0
    while start < len(text):
        space = text.find(" ", start + _PIECE_LENGTH)
        end = len(text) if space < 0 else space + 1
        yield text[start:end]
        start = end


def _results(messages: Sequence[ModelMessage]) -> list[ToolResult]:
    """Results of this run's tools; a call that the harness refused counts as failed."""
    parts = (part for message in messages if isinstance(message, ModelRequest) for part in message.parts)
    return [_result(part) for part in parts if isinstance(part, ToolReturnPart | RetryPromptPart)]


def _result(part: ToolReturnPart | RetryPromptPart) -> ToolResult:
    if isinstance(part, RetryPromptPart):
        return ToolResult(part.tool_name or "", "the call was refused", failed=True)
    return ToolResult(part.tool_name, part.content, failed=part.outcome != "success")
