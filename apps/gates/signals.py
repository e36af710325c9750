"""Signals of this room: rooms above add the gates of goals when gates are counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from apps.gates.schemas import GateSpec
from kernel.events import Event


@dataclass
class ExtraGates:
    """Gates of a deployment's goal, and the tools that its turns may call."""

    gates: list[GateSpec] = field(default_factory=list)
    tools: set[str] = field(default_factory=set)

    def add(self, gates: Iterable[GateSpec], tools: Iterable[str]) -> None:
        self.gates += gates
        self.tools |= set(tools)


# (deployment id, what was added so far). Sent when gates are counted; receivers add to it.
counting_gates: Event[[UUID, ExtraGates]] = Event("counting_gates")
