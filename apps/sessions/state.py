"""What does a turn know while it runs? Filled by its steps in order; nothing of it outlives the turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from uuid import UUID

from apps.bus.schemas import Lease
from apps.gates.schemas import EscalationSpec, GateResult, GateSpec
from apps.guard.schemas import Admitted, NeedsApproval, Refused, RunRef
from apps.sessions.access import AccessController, Level
from apps.sessions.models import ChatSession
from apps.sessions.queries import Said
from apps.skills.schemas import ToolSpec
from kernel.llm.briefing import Passage, ToolBrief, Utterance, Withheld
from kernel.llm.schemas import AgentResponse
from kernel.taint import Taint


@dataclass(frozen=True)
class Policy:
    """What the rows said when the turn began; frozen for its whole length (spec 5.1 step 0)."""

    gates: tuple[GateSpec, ...]
    levels: Mapping[str, Level]
    escalations: Mapping[str, EscalationSpec]
    skills: tuple[str, ...]
    tools: tuple[ToolSpec, ...]


@dataclass(frozen=True)
class Stop:
    """The turn ends here: `text` is said instead of an answer ("" says nothing), `wants_person` asks for a hand-off."""

    reason: str
    text: str = ""
    wants_person: bool = False


@dataclass(frozen=True)
class ModelCharge:
    """A model run that has ended and waits to be settled; `cost` None charges what was reserved."""

    admitted: Admitted
    cost: Decimal | None
    input_tokens: int = 0
    output_tokens: int = 0
    failed: str = ""


@dataclass
class TurnState:
    """One running turn. `session` is as it was when the turn began; the closing reads it again under lock."""

    tenant_id: UUID
    turn_id: UUID
    number: int
    epoch: int
    lease: Lease
    session: ChatSession
    message: Said
    recent: tuple[Said, ...]
    policy: Policy
    access: AccessController
    open_work: tuple[str, ...]
    run: RunRef

    step: str = ""
    text: str = ""
    taint: Taint = Taint.EXTERNAL
    history: tuple[Utterance, ...] = ()
    passages: tuple[Passage, ...] = ()
    tools: tuple[ToolBrief, ...] = ()
    withheld: tuple[Withheld, ...] = ()
    verified: tuple[GateResult, ...] = ()
    response: AgentResponse | None = None
    model_name: str = ""
    fell_back: str = ""
    admitted: Admitted | Refused | NeedsApproval | None = None
    charges: list[ModelCharge] = field(default_factory=list)
    stop: Stop | None = None
    # Gates and models are audited with the turn's end, in the transaction that records what came of them.
    audit: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
