"""May the next step be taken? What a step returned passes its `after_step` gates before the agent reads it.

A step is one call of an attempt, counted from 1. A no, or a wish for a person, ends the attempt there: nothing more is
called. A gate that names no value looks at the agent's report, and is asked when there is one (`executor`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.gates.allowance import Allowance
from apps.gates.enums import GateProvider, GateTrigger, GateType
from apps.gates.schemas import AuditNote, GateSpec
from apps.gates.services import check_gates


class StepStopped(Exception):
    """A gate ends the attempt after a step; `gate` is its name."""

    def __init__(self, gate: str) -> None:
        super().__init__(gate)
        self.gate = gate


@dataclass
class StepGates:
    """The gates of one attempt that look at what its steps return, and what has to be written down of them."""

    gates: tuple[GateSpec, ...] = ()
    allowances: Callable[[], Allowance] = Allowance
    notes: list[AuditNote] = field(default_factory=list)

    async def before(self, step: int, tool: str, args: Mapping[str, Any]) -> None:
        """Ask the gates that want a person whatever the step returns, before its call is made. Raises `StepStopped`."""
        due = [gate for gate in self.gates if asks_before(gate) and gate.after_step == step]
        if not due:
            return
        context = {"step": step, "values": dict(args), "tool_name": tool}
        report = await asyncio.to_thread(check_gates, due, GateTrigger.AFTER_STEP, context, allowance=self.allowances())
        self.notes += report.audit
        stopping = report.blocked or report.needs_approval
        if stopping:
            raise StepStopped(stopping.gate_name)

    async def after(self, step: int, value: Mapping[str, Any]) -> None:
        """Raises `StepStopped`."""
        due = [
            gate for gate in self.gates if looks_at_values(gate) and not asks_before(gate) and gate.after_step == step
        ]
        if not due:
            return
        context = {"step": step, "values": dict(value)}
        report = await asyncio.to_thread(check_gates, due, GateTrigger.AFTER_STEP, context, allowance=self.allowances())
        self.notes += report.audit
        stopping = report.blocked or report.needs_approval
        if stopping:
            raise StepStopped(stopping.gate_name)


def asks_before(gate: GateSpec) -> bool:
    """Whether it wants a person in any case: then it is asked before the step takes effect."""
    always = gate.provider == GateProvider.PREDICATE and gate.type == GateType.APPROVAL_ALWAYS
    return gate.on == GateTrigger.AFTER_STEP and always


def looks_at_values(gate: GateSpec) -> bool:
    """Whether it can be asked as soon as its step is over."""
    return gate.on == GateTrigger.AFTER_STEP and bool(gate.extract or gate.provider == GateProvider.SCRIPT)
