"""Judge the steps of an attempt by the `after_step` gates of its item.

A step is one call of an attempt, counted from 1. A gate that blocks ends the attempt there; one that needs a person
pauses it (`ReviewRequired`), always before an effect: before its own step if that acts or the gate looks at the whole
report, else right after the step, before the agent reads the result and takes the next step (ADR 101).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from apps.approvals.enums import PauseTrigger
from apps.approvals.tokens.payloads import has_passed_gate
from apps.approvals.tokens.schemas import GatePass
from apps.audit.enums import AuditEvent
from apps.gates.allowance import Allowance
from apps.gates.enums import GateAction, GateCode, GateLane, GateTrigger
from apps.gates.schemas import AuditNote, GateReport, GateResult, GateSpec
from apps.gates.services import check_gates
from kernel.errors import SilasError

UNSEEN = "What it wants to see is known only after this step has taken effect"


@dataclass(frozen=True)
class PendingReview:
    """What gates hold back until a person has reviewed it. `seconds`: the shortest timeout that one of them sets."""

    trigger: PauseTrigger
    asking: tuple[GateResult, ...]
    holds: Mapping[str, Any]
    seconds: int | None = None


class ReviewRequired(Exception):
    """The attempt pauses until a person has reviewed what is held back."""

    def __init__(self, review: PendingReview) -> None:
        super().__init__(review.trigger.value)
        self.review = review


class StepStopped(Exception):
    """A gate ends the attempt; `gate` is its name."""

    def __init__(self, gate: str) -> None:
        super().__init__(gate)
        self.gate = gate


@dataclass
class StepGates:
    """The step gates of one attempt and their audit notes. `passes`: what people have approved before; `effects`: tools
    whose calls have an effect."""

    gates: tuple[GateSpec, ...] = ()
    allowances: Callable[[], Allowance] = Allowance
    passes: tuple[GatePass, ...] = ()
    effects: frozenset[str] = frozenset()
    notes: list[AuditNote] = field(default_factory=list)

    async def before(self, step: int, tool: str, args: Mapping[str, Any]) -> None:
        """Ask the gates that must run before their step's call; one that names an argument judges it. Raises
        `StepStopped` and `ReviewRequired`."""
        due = [gate for gate in self._of(step) if self._asks_first(gate, tool)]
        if not due:
            return
        # Only these can see what they look at before the call; the others ask a person without having seen it.
        judged = [gate for gate in due if gate.always_needs_approval or gate.extract in args]
        report = await self._check(judged, {"step": step, "values": dict(args), "tool_name": tool})
        unseen = tuple(_unseen_result(gate) for gate in due if gate not in judged)
        self.notes += [(AuditEvent.GATE_ASKED, {"gate": one.gate_name, "code": one.code}) for one in unseen]
        self._hold((*report.asking, *unseen), _call(step, tool, args))

    async def after(self, step: int, tool: str, args: Mapping[str, object], value: Mapping[str, object]) -> None:
        """Ask the gates that look at a step's result. Raises `StepStopped` and `ReviewRequired`."""
        due = [gate for gate in self._of(step) if gate.checks_values]
        if not due:
            return
        report = await self._check(due, {"step": step, "values": dict(value)})
        call = _call(step, tool, args)
        asking = [result for result in report.asking if not self._is_let_through(result, call)]
        named = {gate.extract for gate in due if any(gate.name == result.gate_name for result in asking)}
        self._hold(
            asking, {**call, "value": {name: field_value for name, field_value in value.items() if name in named}}
        )

    def _of(self, step: int) -> list[GateSpec]:
        return [gate for gate in self.gates if gate.on == GateTrigger.AFTER_STEP and gate.after_step == step]

    async def _check(self, due: Sequence[GateSpec], context: Mapping[str, object]) -> GateReport:
        report = await asyncio.to_thread(check_gates, due, GateTrigger.AFTER_STEP, context, allowance=self.allowances())
        self.notes += report.audit
        if report.blocked:
            raise StepStopped(report.blocked.gate_name)
        return report

    def _asks_first(self, gate: GateSpec, tool: str) -> bool:
        """Whether the gate runs before its step: it always needs a person, or could judge only when it is too late."""
        late = gate.checks_report or (gate.checks_values and tool in self.effects)
        return gate.may_need_approval and (gate.always_needs_approval or late)

    def _hold(self, asking: Sequence[GateResult], holds: Mapping[str, object]) -> None:
        still = tuple(result for result in asking if not self._is_let_through(result, holds))
        if still:
            raise ReviewRequired(PendingReview(PauseTrigger.STEP, still, holds))

    def _is_let_through(self, result: GateResult, holds: Mapping[str, object]) -> bool:
        try:
            return has_passed_gate(self.passes, trigger=PauseTrigger.STEP, gate=result.gate_name, holds=holds)
        except SilasError:  # what cannot be signed cannot have been approved
            return False


def _call(step: int, tool: str, args: Mapping[str, object]) -> dict[str, object]:
    return {"step": step, "tool": tool, "args": dict(args)}


def _unseen_result(gate: GateSpec) -> GateResult:
    return GateResult(
        gate.name,
        GateLane.POLICY,
        GateAction.REQUIRE_APPROVAL,
        GateCode.NEEDS_APPROVAL,
        UNSEEN,
        on_block=gate.on_block,
    )
