"""What does this room ask of the rooms above? What a turn meets beside the gates that are rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from apps.gates.schemas import GateSpec
from kernel.events import Event


@dataclass
class ExtraGates:
    """What one deployment's turns bring along: gates of a goal, and the tools that a turn may call itself."""

    gates: list[GateSpec] = field(default_factory=list)
    tools: set[str] = field(default_factory=set)

    def add(self, gates: Iterable[GateSpec], tools: Iterable[str]) -> None:
        self.gates += gates
        self.tools |= set(tools)


# Announced (deployment, what was added so far) when gates are counted; receivers add theirs.
counting_gates: Event[[UUID, ExtraGates]] = Event("counting_gates")
