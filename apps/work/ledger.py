"""What really happened in an attempt? Every call and its outcome, in order, from the guard and not from the agent.

Artifacts and the verdict are built from this, never from the agent's report (spec 5.2.1 c1, c3). What did not happen is
a failed call to the agent; an effect of which nobody knows whether it happened ends the attempt at once. What an
earlier attempt got done is not done again: the agent is told what came of it then.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, assert_never

from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets.abstract import ToolsetTool

from apps.approvals.enums import PauseTrigger
from apps.guard.enums import RefusalCode
from apps.guard.schemas import CallOutcome, Done, Failed, NeedsApproval, Refused, call_digest
from apps.guard.toolset import GuardedToolset
from apps.work.meter import Meter
from apps.work.step_gates import PendingReview, ReviewRequired, StepGates
from kernel.clock import now

FILES = "_artifacts"


class EffectUncertain(Exception):
    """Nobody knows whether the action took effect: the attempt stops, and the outside checks decide."""


@dataclass(frozen=True)
class LedgerLine:
    """One call as it went (contract silas 9, ExecutionResult as far as work needs it). `earlier`: done by an attempt
    before, and only told again."""

    tool: str
    digest: str
    at: datetime
    seconds: float = 0.0
    error: str = ""
    refusal: RefusalCode | None = None
    value: Mapping[str, Any] = field(default_factory=dict)
    earlier: bool = False


@dataclass
class Ledger:
    """The calls of one attempt. `observe` is the guarded toolset's observer; `settled` is what earlier attempts got
    done, by the digest of the call, and `carried` the files that this left."""

    settled: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    carried: Mapping[str, bytes] = field(default_factory=dict)
    lines: list[LedgerLine] = field(default_factory=list)
    _asked_at: float = field(default_factory=time.monotonic)

    def elapsed(self) -> float:
        """Seconds since the call that is under way was asked for."""
        return round(time.monotonic() - self._asked_at, 3)

    def ask(self, tool: str, args: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """A call is about to be made: what came of it, if an earlier attempt made it."""
        self._asked_at = time.monotonic()
        digest = call_digest(tool, args)
        known = self.settled.get(digest)
        if known is not None:
            self.lines.append(LedgerLine(tool, digest, now(), value=known, earlier=True))
        return known

    def observe(self, tool: str, args: Mapping[str, Any], outcome: CallOutcome) -> None:
        """Write the outcome down. Raises what tells the agent, ends the attempt, or pauses it (`PersonWanted`)."""
        match outcome:
            case Done(value=value):
                self._write(tool, args, value=value if isinstance(value, Mapping) else {"value": value})
            case Refused(code=code, reason=reason):
                self._write(tool, args, error=code.value, refusal=code)
                self._tell(reason, uncertain=code is RefusalCode.EFFECT_UNCERTAIN)
            case NeedsApproval(asking=asking, args=held) if asking:
                raise ReviewRequired(PendingReview(PauseTrigger.TOOL, asking, {"tool": tool, "args": dict(held)}))
            case NeedsApproval(reason=reason):
                missing = RefusalCode.APPROVAL_MISSING
                self._write(tool, args, error=missing.value, refusal=missing)
                self._tell(reason)
            case Failed(code=code, reason=reason, uncertain=uncertain):
                self._write(tool, args, error=code)
                self._tell(reason, uncertain=uncertain)
            case _:
                assert_never(outcome)

    def _write(self, tool: str, args: Mapping[str, Any], **said: Any) -> None:
        self.lines.append(LedgerLine(tool, call_digest(tool, args), now(), self.elapsed(), **said))

    def _tell(self, reason: str, *, uncertain: bool = False) -> None:
        if uncertain:
            raise EffectUncertain
        raise ToolFailed(reason)

    @property
    def last_failure(self) -> LedgerLine | None:
        return next((line for line in reversed(self.lines) if line.error), None)

    @property
    def said(self) -> str:
        """What the tools' own sentences were, in order."""
        return " ".join(str(line.value["say"]) for line in self.lines if line.value.get("say"))

    @property
    def artifacts(self) -> dict[str, bytes]:
        """The files that successful calls left, merged in the order of the calls."""
        found = dict(self.carried)
        for line in self.lines:
            found |= files_in(line.value)
        return found


def files_in(value: Any) -> dict[str, bytes]:
    """The files among what a call returned."""
    files = value.get(FILES, {}) if isinstance(value, Mapping) else {}
    return {name: base64.b64decode(content) for name, content in files.items()}


def without_files(value: Any) -> dict[str, Any]:
    """What the model reads, and what the ledger keeps, of what a call returned."""
    fields = value if isinstance(value, Mapping) else {"value": value}
    return {key: item for key, item in fields.items() if key != FILES}


@dataclass
class WorkToolset(GuardedToolset):
    """The guarded toolset of an approved item: acting tools are made, nothing is made twice, and the budget is looked
    at before each call; what a call returned passes its gates before anything else happens."""

    defer_acting: bool = False
    ledger: Ledger = field(default_factory=Ledger)
    meter: Meter | None = None
    steps: StepGates = field(default_factory=StepGates)

    def __post_init__(self) -> None:
        self.observe = self.ledger.observe

    @property
    def patience_seconds(self) -> float:
        """No longer than is left of the item's time."""
        usual = super().patience_seconds
        return usual if self.meter is None else max(min(usual, self.meter.seconds_left), 1.0)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        if self.meter is not None:
            self.meter.require()
        known = self.ledger.ask(name, tool_args)
        if known is not None:
            await self.steps.after(len(self.ledger.lines), name, tool_args, known)
            return dict(known)
        await self.steps.before(len(self.ledger.lines) + 1, name, tool_args)
        async with self.meter.busy if self.meter is not None else nullcontext():
            value = await super().call_tool(name, tool_args, ctx, tool)
            await self.steps.after(len(self.ledger.lines), name, tool_args, self.ledger.lines[-1].value)
        return without_files(value) if isinstance(value, dict) else value
