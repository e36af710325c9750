"""What really happened in an attempt? Every call and its outcome, in order, from the guard and not from the agent.

Artifacts and the verdict are built from this, never from the agent's report (spec 5.2.1 c1, c3). What did not happen is
a failed call to the agent; an effect of which nobody knows whether it happened ends the attempt at once.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, assert_never

from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets.abstract import ToolsetTool

from apps.guard.enums import RefusalCode
from apps.guard.schemas import CallOutcome, Done, Failed, NeedsApproval, Refused
from apps.guard.toolset import GuardedToolset

_ARTIFACTS = "_artifacts"


class EffectUncertain(Exception):
    """Nobody knows whether the action took effect: the attempt stops, and the outside checks decide."""


@dataclass(frozen=True)
class LedgerEntry:
    """One call as it went (contract silas 9, ExecutionResult as far as work needs it)."""

    tool: str
    error: str = ""
    refusal: RefusalCode | None = None
    value: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Ledger:
    """The calls of one attempt. `observe` is the guarded toolset's observer."""

    entries: list[LedgerEntry] = field(default_factory=list)

    def observe(self, tool: str, args: Mapping[str, Any], outcome: CallOutcome) -> None:
        """Write the outcome down. Raises what tells the agent, or ends the attempt."""
        match outcome:
            case Done(value=value):
                self.entries.append(LedgerEntry(tool, value=value if isinstance(value, Mapping) else {"value": value}))
            case Refused(code=code, reason=reason):
                self._failed(LedgerEntry(tool, code.value, code), reason, code is RefusalCode.EFFECT_UNCERTAIN)
            case NeedsApproval(reason=reason):
                self._failed(LedgerEntry(tool, RefusalCode.APPROVAL_MISSING, RefusalCode.APPROVAL_MISSING), reason)
            case Failed(code=code, reason=reason, uncertain=uncertain):
                self._failed(LedgerEntry(tool, code), reason, uncertain)
            case _:
                assert_never(outcome)

    def _failed(self, entry: LedgerEntry, reason: str, uncertain: bool = False) -> None:
        self.entries.append(entry)
        if uncertain:
            raise EffectUncertain
        raise ToolFailed(reason)

    @property
    def last_failure(self) -> LedgerEntry | None:
        return next((entry for entry in reversed(self.entries) if entry.error), None)

    @property
    def said(self) -> str:
        """What the tools' own sentences were, in order."""
        return " ".join(str(entry.value["say"]) for entry in self.entries if entry.value.get("say"))

    @property
    def artifacts(self) -> dict[str, bytes]:
        """The files that successful calls left, merged in the order of the calls."""
        found: dict[str, bytes] = {}
        for entry in self.entries:
            found |= {name: base64.b64decode(content) for name, content in entry.value.get(_ARTIFACTS, {}).items()}
        return found


@dataclass
class WorkToolset(GuardedToolset):
    """The guarded toolset of an approved item: acting tools are made, and files stay out of what the model reads."""

    defer_acting: bool = False

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        value = await super().call_tool(name, tool_args, ctx, tool)
        return {key: item for key, item in value.items() if key != _ARTIFACTS} if isinstance(value, dict) else value
