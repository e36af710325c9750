"""Frozen shapes of a request for assistance and of its result. Everything in a result is plain text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from apps.copilot.enums import AssistanceKind
from llm.briefing import Passage

MAX_TEXT = 4000


@dataclass(frozen=True)
class AssistanceRequest:
    """`text` is the draft to rewrite, `form` the name of the form to fill, `language` the one staff read. `request_id`
    is the caller's own id, by which it can be cancelled while it runs."""

    kind: AssistanceKind
    text: str = ""
    form: str = ""
    language: str = "en"
    request_id: UUID | None = None


@dataclass(frozen=True)
class Source:
    """A passage that the text rests on, as it is in the document."""

    title: str
    quote: str
    url: str = ""


@dataclass(frozen=True)
class FilledField:
    """A value for a field and the message that it comes from. `verbatim`: the message holds the value as it stands."""

    name: str
    label: str
    value: str
    seq: int = 0
    line: str = ""
    verbatim: bool = False


@dataclass(frozen=True)
class PlannedTool:
    """A tool that the bot would call. It was not called."""

    name: str
    arguments: tuple[tuple[str, str], ...] = ()
    acting: bool = False


@dataclass(frozen=True)
class Draft:
    """What a model or a rule came up with, before the gates have looked at it. `passages` were shown to the model,
    `seqs` are the messages that it read. `fell_back` is the code of why the chatbot's model did not write it."""

    text: str = ""
    sources: tuple[Source, ...] = ()
    fields: tuple[FilledField, ...] = ()
    tools: tuple[PlannedTool, ...] = ()
    hands_over: bool = False
    model_name: str = ""
    fell_back: str = ""
    prompt: str = ""
    passages: tuple[Passage, ...] = ()
    seqs: tuple[int, ...] = ()
    marked: bool = False


@dataclass(frozen=True)
class AssistanceResult:
    """`marked`: a source holds instructions to the assistant. `blocked_by` is the gate that would hold the bot's answer
    back; only a preview has one."""

    id: UUID
    kind: AssistanceKind
    text: str
    model: str
    cost_usd: Decimal
    sources: tuple[Source, ...] = ()
    fields: tuple[FilledField, ...] = ()
    tools: tuple[PlannedTool, ...] = ()
    hands_over: bool = False
    blocked_by: str = ""
    fell_back: str = ""
    marked: bool = False

    @property
    def needs_sources(self) -> bool:
        """Whether a reader has to be told that no document supports the text."""
        return self.kind == AssistanceKind.SUGGEST and not self.sources

    def as_kept(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_kept(cls, kept: Mapping[str, Any]) -> AssistanceResult:
        made = {
            "sources": tuple(Source(**each) for each in kept["sources"]),
            "fields": tuple(FilledField(**each) for each in kept["fields"]),
            "tools": tuple(PlannedTool(**each) for each in kept["tools"]),
        }
        return cls(**{**kept, **made})
