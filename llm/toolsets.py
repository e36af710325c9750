"""Restrict the caller's toolset to the briefing, and run each call once (contract silas 4.24).

Outer wrappers only add restrictions: a tool that the briefing does not name does not exist, and an acting tool called
by a proxy or planner is deferred, not run. Results of a try are reused by the next try instead of being produced again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset, WrapperToolset
from pydantic_ai.toolsets.abstract import ToolsetTool

from kernel.canonical import canonical_json
from llm.briefing import Briefing
from llm.calls import is_plain_json
from llm.enums import Role


class CallLedger:
    """The finished calls of one run, over all its tries."""

    def __init__(self) -> None:
        self._done: list[tuple[str, object]] = []
        self._owed: list[tuple[str, object]] = []

    def begin_try(self) -> None:
        self._owed = list(self._done)

    async def once(self, name: str, args: dict[str, object], make: Callable[[], Awaitable[object]]) -> Any:
        """Return an earlier try's result of the same call, each used once; otherwise make the call."""
        if not is_plain_json(args):
            raise ModelRetry("The arguments are not JSON.")
        digest = canonical_json({"args": args, "tool": name})
        for position, (known, result) in enumerate(self._owed):
            if known == digest:
                del self._owed[position]
                return result
        result = await make()
        self._done.append((digest, result))
        return result


@dataclass
class OnceToolset(WrapperToolset[Any]):
    ledger: CallLedger

    async def call_tool(
        self, name: str, tool_args: dict[str, object], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> object:
        return await self.ledger.once(name, tool_args, lambda: self.wrapped.call_tool(name, tool_args, ctx, tool))


def restrict_toolset(
    toolset: AbstractToolset[Any] | None, briefing: Briefing, ledger: CallLedger
) -> AbstractToolset[Any]:
    named = {tool.name for tool in briefing.tools}
    acting = {tool.name for tool in briefing.tools if tool.acting}
    reachable: AbstractToolset[Any] = (toolset or FunctionToolset[Any]()).filtered(lambda _, tool: tool.name in named)
    if briefing.role is not Role.EXECUTOR:
        reachable = reachable.approval_required(lambda _, tool, __: tool.name in acting)
    return OnceToolset(reachable, ledger)
