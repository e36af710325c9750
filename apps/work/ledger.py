"""Record what really happened in an attempt: every call and its outcome, from the guard and not from the agent.

Artifacts and the verdict are built from this, never from the agent's report (spec 5.2.1 c1, c3). A failed call is
reported to the agent; a call whose effect is uncertain ends the attempt at once. A call that an earlier attempt made is
not repeated: the agent gets its earlier result.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, assert_never

from apps.approvals.enums import PauseTrigger
from apps.guard.enums import RefusalCode
from apps.guard.schemas import CallOutcome, Done, Failed, NeedsApproval, Refused, call_digest
from apps.work.step_gates import PendingReview, ReviewRequired
from kernel.clock import now

FILES = "_artifacts"


class EffectUncertain(Exception):
    """It is unknown whether an action took effect: the attempt stops, and the independent checks decide."""


@dataclass(frozen=True)
class LedgerLine:
    """One call as it happened (contract silas 9, ExecutionResult). `earlier`: made by an earlier attempt and only
    replayed."""

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
    """The calls of one attempt. `observe` is the guarded toolset's observer; `earlier_results` holds the results of
    earlier attempts by call digest, and `earlier_files` the files that they left."""

    earlier_results: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    earlier_files: Mapping[str, bytes] = field(default_factory=dict)
    lines: list[LedgerLine] = field(default_factory=list)
    _started_at: float = field(default_factory=time.monotonic)

    def elapsed(self) -> float:
        """Seconds since the current call was requested."""
        return round(time.monotonic() - self._started_at, 3)

    def begin_call(self, tool: str, args: Mapping[str, object]) -> Mapping[str, object] | None:
        """Start the clock of a call; return its result if an earlier attempt made it."""
        self._started_at = time.monotonic()
        digest = call_digest(tool, args)
        known = self.earlier_results.get(digest)
        if known is not None:
            self.lines.append(LedgerLine(tool, digest, now(), value=known, earlier=True))
        return known

    def observe(self, tool: str, args: Mapping[str, object], outcome: CallOutcome) -> None:
        """Record the outcome. Raises to report it to the agent, end the attempt, or pause it (`ReviewRequired`)."""
        match outcome:
            case Done(value=value):
                self._write(tool, args, value=value if isinstance(value, Mapping) else {"value": value})
            case Refused(code=code, reason=reason):
                self._write(tool, args, error=code.value, refusal=code)
                self._report(reason, uncertain=code is RefusalCode.EFFECT_UNCERTAIN)
            case NeedsApproval(asking=asking, args=held) if asking:
                raise ReviewRequired(PendingReview(PauseTrigger.TOOL, asking, {"tool": tool, "args": dict(held)}))
            case NeedsApproval(reason=reason):
                missing = RefusalCode.APPROVAL_MISSING
                self._write(tool, args, error=missing.value, refusal=missing)
                self._report(reason)
            case Failed(code=code, reason=reason, uncertain=uncertain):
                self._write(tool, args, error=code)
                self._report(reason, uncertain=uncertain)
            case _:
                assert_never(outcome)

    def _write(self, tool: str, args: Mapping[str, Any], **fields: Any) -> None:
        self.lines.append(LedgerLine(tool, call_digest(tool, args), now(), self.elapsed(), **fields))

    def _report(self, reason: str, *, uncertain: bool = False) -> None:
        if uncertain:
            # The agent must not get a chance to try again: the first call may have taken effect.
            raise EffectUncertain
        from pydantic_ai.exceptions import ToolFailed

        raise ToolFailed(reason)

    @property
    def last_failure(self) -> LedgerLine | None:
        return next((line for line in reversed(self.lines) if line.error), None)

    @property
    def messages(self) -> str:
        """The sentences that the tools returned for the visitor, in order."""
        return " ".join(str(line.value["say"]) for line in self.lines if line.value.get("say"))

    @property
    def artifacts(self) -> dict[str, bytes]:
        """Files that successful calls left, merged in the order of the calls."""
        files = dict(self.earlier_files)
        for line in self.lines:
            files |= files_in(line.value)
        return files


def files_in(value: object) -> dict[str, bytes]:
    """Return the files among the values that a call returned."""
    files = value.get(FILES, {}) if isinstance(value, Mapping) else {}
    return {name: base64.b64decode(content) for name, content in files.items()}


def without_files(value: object) -> dict[str, object]:
    """Return what a call returned without its files, for the model and the ledger."""
    fields = value if isinstance(value, Mapping) else {"value": value}
    return {key: item for key, item in fields.items() if key != FILES}
