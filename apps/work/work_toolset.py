"""The toolset of an approved item: guarded calls that are made once, within the budget and between their gates."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets.abstract import ToolsetTool

from apps.guard.toolset import GuardedToolset
from apps.work.ledger import Ledger, without_files
from apps.work.meter import Meter
from apps.work.step_gates import StepGates


@dataclass
class WorkToolset(GuardedToolset):
    """Guarded toolset of an approved item: acting calls are made, no call is made twice, the budget is checked before
    each call, and each result passes its gates before the agent sees it."""

    defer_acting: bool = False
    ledger: Ledger = field(default_factory=Ledger)
    meter: Meter | None = None
    steps: StepGates = field(default_factory=StepGates)

    def __post_init__(self) -> None:
        self.observe = self.ledger.observe

    @property
    def patience_seconds(self) -> float:
        """Seconds to wait for a call: at most the time that is left of the item's budget."""
        usual = super().patience_seconds
        return usual if self.meter is None else max(min(usual, self.meter.seconds_left), 1.0)

    async def call_tool(
        self, name: str, tool_args: dict[str, object], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        if self.meter is not None:
            self.meter.require()
        # A retry must not repeat an effect: equal calls return the stored result of the earlier attempt.
        earlier = self.ledger.begin_call(name, tool_args)
        if earlier is not None:
            await self.steps.after(len(self.ledger.lines), name, tool_args, earlier)
            return dict(earlier)
        await self.steps.before(len(self.ledger.lines) + 1, name, tool_args)
        async with self.meter.busy if self.meter is not None else nullcontext():
            value = await super().call_tool(name, tool_args, ctx, tool)
            await self.steps.after(len(self.ledger.lines), name, tool_args, self.ledger.lines[-1].value)
        return without_files(value) if isinstance(value, dict) else value
