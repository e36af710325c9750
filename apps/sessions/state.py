"""The state of a running turn. Its steps fill it in order; nothing of it outlives the turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from django.utils.functional import Promise

from apps.access.rules import AccessController, Level
from apps.approvals.enums import PauseTrigger
from apps.approvals.models import GatePause
from apps.approvals.tokens.schemas import GatePass
from apps.bus.schemas import Lease
from apps.gates.allowance import Allowance
from apps.gates.content import ContentMark
from apps.gates.schemas import EscalationSpec, GateResult, GateSpec
from apps.guard.enums import RefusalCode
from apps.guard.schemas import Admitted, CallOutcome, Done, Failed, NeedsApproval, Refused, RunRef
from apps.knowledge.provider_vectors import SearchPlan
from apps.memory.schemas import Note
from apps.persona.schemas import Tone
from apps.releases.schemas import ServedSettings
from apps.sessions.context_state import Focus
from apps.sessions.models import ChatSession
from apps.sessions.queries import Said
from apps.skills.roles import ActiveSkill
from apps.skills.schemas import ToolSpec
from apps.work.services.proposals import ScreenedPlan
from kernel.taint import Taint
from llm.attachments import Attachment
from llm.briefing import HistoryMessage, Passage, RecalledMemory, SkillBrief, ToolBrief, WithheldTool
from llm.context.items import Window
from llm.enums import InteractionMode, InteractionRegister
from llm.runs import Usage
from llm.schemas import AgentResponse, MemoryOp


@dataclass(frozen=True)
class Policy:
    """What the rows said when the turn began; frozen for its whole length (spec 5.1 step 0). `skills`: what gates and
    tools run under; `known`: those of them that models may be told of; `search`: how the
    company searches beyond the built-in way."""

    gates: tuple[GateSpec, ...]
    levels: Mapping[str, Level]
    escalations: Mapping[str, EscalationSpec]
    skills: tuple[str, ...]
    tools: tuple[ToolSpec, ...]
    known: tuple[ActiveSkill, ...] = ()
    search: SearchPlan | None = None


@dataclass(frozen=True)
class Fix:
    """A task that a block starts (spec 5.1.1 `spawn_task`): its plan as the goal's author wrote it ("" for the goal's
    own template), and what it is about, in codes."""

    template: str
    about: Mapping[str, str]


@dataclass(frozen=True)
class Held:
    """What gates hold back until a person has looked: who asks, at which trigger, and the content."""

    trigger: PauseTrigger
    asking: tuple[GateResult, ...]
    holds: Mapping[str, Any]


@dataclass(frozen=True)
class Stop:
    """The turn ends here: `text` is said instead of an answer ("" says nothing), `wants_person` asks for a hand-off, to
    the named `queue` if there is one. `report` tells the owner; `fix` is put before a person, and `otherwise` is what
    happens when that cannot be. `held`: the turn waits for a person, and goes on with another turn.
    """

    reason: str
    text: str | Promise = ""
    wants_person: bool = False
    queue: str = ""
    report: bool = False
    fix: Fix | None = None
    otherwise: Stop | None = None
    held: Held | None = None


@dataclass(frozen=True)
class ModelCharge:
    """A model run that has ended and waits to be settled; `usage` None charges what was reserved."""

    admitted: Admitted
    usage: Usage | None = None
    failed: str = ""


@dataclass(frozen=True)
class Wish:
    """A memory operation that the gates let pass, and its words as they may be kept; None for one without words."""

    op: MemoryOp
    note: Note | None


class Heard(NamedTuple):
    """A call that was carried out, what it was asked and what it answered (step 11.5 keeps it raw)."""

    tool: str
    args: Mapping[str, Any]
    done: Done


@dataclass
class TurnState:
    """One running turn. `session` is as it was when the turn began; the closing reads it again under lock, and finds
    out whether `more` of the visitor's messages wait. `called_off`: the work that its visitor no longer wants, and
    whose it is. `untold`: how many tools did not fit into their part of the `window`. `focus` is what windows are laid
    out by, as this turn leaves it; `memories` were found by the message, `subscribed` by what was asked before. `notes`
    go to memory with the turn's end, `answer_note` when the answer is recorded; `heard` is what tools told the model.
    """

    tenant_id: UUID
    turn_id: UUID
    number: int
    epoch: int
    lease: Lease
    session: ChatSession
    # What the conversation is served by: persona, models, greeting, suggestions, languages.
    settings: ServedSettings
    message: Said
    recent: tuple[Said, ...]
    policy: Policy
    access: AccessController
    open_work: tuple[str, ...]
    run: RunRef
    # What was declined lately, each with the reason that the visitor was told, "" without one.
    declined_work: tuple[tuple[str, str], ...] = ()
    # How the answer sounds; None when the deployment has no personality.
    tone: Tone | None = None

    step: str = ""
    text: str = ""
    taint: Taint = Taint.EXTERNAL
    history: tuple[HistoryMessage, ...] = ()
    passages: tuple[Passage, ...] = ()
    memories: tuple[RecalledMemory, ...] = ()
    subscribed: tuple[RecalledMemory, ...] = ()
    # Files that the visitor sent with the last messages.
    attachments: tuple[Attachment, ...] = ()
    window: Window | None = None
    tools: tuple[ToolBrief, ...] = ()
    withheld: tuple[WithheldTool, ...] = ()
    untold: int = 0
    # What the proxy was told of the skills, and of which of them the planner read the instructions.
    skills: tuple[SkillBrief, ...] = ()
    taught: tuple[SkillBrief, ...] = ()
    verified: tuple[GateResult, ...] = ()
    # Who answered: "direct" (the proxy itself) or "planner"; "" before an answer.
    route: str = ""
    # What kind of interaction this is, and how proactively it may proceed (spec 0.5.7, 5.1.0).
    register: InteractionRegister | None = None
    mode: InteractionMode | None = None
    response: AgentResponse | None = None
    model_name: str = ""
    fell_back: str = ""
    # The wordings that models were told in this turn, for example `proxy@1`.
    prompts: tuple[str, ...] = ()
    admitted: Admitted | Refused | NeedsApproval | None = None
    charges: list[ModelCharge] = field(default_factory=list)
    stop: Stop | None = None
    focus: Focus = field(default_factory=Focus)
    notes: list[Note] = field(default_factory=list)
    answer_note: Note | None = None
    heard: list[Heard] = field(default_factory=list)
    # Instructions to the assistant in what its models read: the turn's ceiling is lower from there on.
    marks: list[ContentMark] = field(default_factory=list)
    # Tools that failed, with what the model was told of it, which may be an outsider's words.
    failures: list[tuple[str, str]] = field(default_factory=list)
    wishes: list[Wish] = field(default_factory=list)
    called_off: tuple[UUID, str] | None = None
    # A person answers this message: the gates look at it, for what models read later, and nothing else happens.
    overheard: bool = False
    # The pause whose end this turn goes on after, and what people have let through for this message.
    resumed: GatePause | None = None
    passes: tuple[GatePass, ...] = ()
    # A call that gates hold back: the turn waits for a person.
    held_call: Held | None = None
    # The plan of the answer, where it may be taken in.
    screened: ScreenedPlan | None = None
    # The gate that refused the last call of a tool, or the plan; "" when none did.
    refused_by: str = ""
    more: bool = False
    # What the gates of this turn may still ask, over all triggers.
    allowance: Allowance = field(default_factory=Allowance)
    # Gates and models are audited with the turn's end, in the transaction that records what came of them.
    audit: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @property
    def resumed_answer(self) -> bool:
        """True when this turn goes on with an answer that was held back."""
        return self.resumed is not None and self.resumed.trigger == PauseTrigger.OUTPUT

    def hear(self, tool: str, args: Mapping[str, object], outcome: CallOutcome) -> None:
        """Observe a call of the turn's toolset. Of what a gate refused the last word counts: a model that was refused
        and then asked rightly has mended it itself."""
        if isinstance(outcome, Done):
            self.heard.append(Heard(tool, args, outcome))
        if isinstance(outcome, Failed):
            self.failures.append((tool, outcome.reason))
        if isinstance(outcome, Done | Failed) and outcome.mark:
            self.marks.append(outcome.mark)
        if isinstance(outcome, NeedsApproval) and outcome.asking:
            self.held_call = self.held_call or Held(
                PauseTrigger.TOOL, outcome.asking, {"tool": tool, "args": dict(outcome.args)}
            )
        refused = isinstance(outcome, Refused) and outcome.code == RefusalCode.GATE_BLOCKED
        self.refused_by = (outcome.gate or "") if isinstance(outcome, Refused) and refused else ""
