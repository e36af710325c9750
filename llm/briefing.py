"""The input of a run as one frozen value; the caller builds it from rows, `render.render` words it for real models.

Contract silas 7. Everything from a visitor, a document or a tool is data: it carries its taint and can neither close
its block nor open another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kernel.taint import Taint
from llm.attachments import Attachment
from llm.calls import PlannedCall
from llm.enums import InteractionMode, MemoryType, Role


@dataclass(frozen=True)
class Passage:
    """A retrieved piece of a document version; `quote` is byte for byte `text[start:end]` of the stored UTF-8.

    `score` is how alike question and passage are, 0 to 1 (cosine similarity); the order of passages says which is best.
    `is_file`: it is the text of a file that the visitor sent, whose id is `document_id` and which has no versions.
    """

    document_id: str
    version_id: str
    title: str
    url: str
    start: int
    end: int
    quote: str
    score: float = 0.0
    is_file: bool = False


@dataclass(frozen=True)
class ToolBrief:
    """What a model may know of a tool. `ask` is the question for each argument; `intent` a title template like
    "Change the address on {policy}"; `skill` the skill it belongs to."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    acting: bool = False
    keywords: tuple[str, ...] = ()
    ask: Mapping[str, str] = field(default_factory=dict)
    requires_level: str = "public"
    skill: str = ""
    intent: str = ""


@dataclass(frozen=True)
class WithheldTool:
    """A tool above the visitor's level: `ask` says what to give in order to reach `level`."""

    tool: ToolBrief
    level: str
    ask: str


@dataclass(frozen=True)
class SkillBrief:
    """What a model may know of a skill: when to use it, and its whole `instructions` where they are its business."""

    name: str
    description: str
    instructions: str = ""


@dataclass(frozen=True)
class RecalledMemory:
    """A memory that was recalled. `kind` is its memory type, `trust` its trust level, `said_at` its day, ISO;
    `score` how alike question and memory are, 0 to 1; `marked`: it was written after its author had read instructions
    to the assistant."""

    memory_id: str
    text: str
    kind: str
    trust: str
    taint: Taint
    said_at: str
    reference: str = ""
    score: float = 0.0
    marked: bool = False

    @property
    def is_default(self) -> bool:
        """Whether it is a preference that a person confirmed, and so a default for the model (spec 6.6)."""
        return self.kind == MemoryType.PREFERENCE and self.trust != "working" and self.taint is not Taint.EXTERNAL


@dataclass(frozen=True)
class HistoryMessage:
    """One recorded message. `sender` is `visitor`, `bot`, `human` or `system`."""

    sender: str
    text: str
    taint: Taint = Taint.EXTERNAL


@dataclass(frozen=True)
class Briefing:
    """One run's knowledge of the world.

    `text` is the message to answer and is not repeated in `history` (oldest first). `tools` are the only ones that
    may be called. `requested` holds acting calls that the proxy asked for (planner). `today` is the visitor's date,
    ISO, or "". `reference` names the turn; a plan's id is derived from it.
    `mode` is the resolved interaction mode (planner). `attachments` are files of the visitor's last messages.
    `declined` is what colleagues declined lately, each with the name of the reason that the visitor was told, or "".
    `is_form`: the message is what the visitor filled into a form that staff or the company's system put to them.
    """

    role: Role
    text: str
    title: str = ""
    greeting: str = ""
    persona: str = ""
    constitution: tuple[str, ...] = ()
    level: str = "public"
    history: tuple[HistoryMessage, ...] = ()
    passages: tuple[Passage, ...] = ()
    memories: tuple[RecalledMemory, ...] = ()
    tools: tuple[ToolBrief, ...] = ()
    withheld: tuple[WithheldTool, ...] = ()
    skills: tuple[SkillBrief, ...] = ()
    instruction: str = ""
    work_body: str = ""
    suggestions: tuple[str, ...] = ()
    requested: tuple[PlannedCall, ...] = ()
    context_profiles: tuple[str, ...] = ("conversation",)
    today: str = ""
    reference: str = ""
    mode: InteractionMode | None = None
    attachments: tuple[Attachment, ...] = ()
    declined: tuple[tuple[str, str], ...] = ()
    is_form: bool = False

    @property
    def quotable(self) -> tuple[Passage, ...]:
        """What an answer may cite: the passages, and behind them the texts of the visitor's files."""
        return (*self.passages, *(_file_passage(file) for file in self.attachments if file.text))


def _file_passage(file: Attachment) -> Passage:
    return Passage(file.file_id, "", file.name, "", 0, len(file.text.encode()), file.text, is_file=True)
