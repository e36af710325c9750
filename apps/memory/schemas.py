"""Reports of an ingest, scopes of memories, and notes that are to be kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from uuid import UUID

from apps.memory.enums import ScopeKind, SourceKind, Tier, Trust
from apps.memory.parsing import Problem
from kernel.taint import Taint
from llm.enums import MemoryType


class Outcome(StrEnum):
    """`reindexed`: same text, but its title, address or the way of cutting it changed."""

    ADDED = "added"
    UPDATED = "updated"
    REINDEXED = "reindexed"
    UNCHANGED = "unchanged"


@dataclass(frozen=True)
class FileReport:
    """`documents` are the outcomes of the file's documents; `problems` of what could not be read of it."""

    path: Path
    documents: tuple[Outcome, ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class IngestReport:
    """`skipped` are files of other types that were in a given folder."""

    collection_id: UUID
    files: tuple[FileReport, ...] = ()
    skipped: tuple[Path, ...] = ()

    @property
    def counts(self) -> Counter[Outcome]:
        return Counter(outcome for file in self.files for outcome in file.documents)

    @property
    def failed(self) -> tuple[FileReport, ...]:
        return tuple(file for file in self.files if file.problems)


@dataclass(frozen=True)
class Sources:
    """Files to read, each with the reference it is known by, and those left aside."""

    files: tuple[tuple[Path, str], ...]
    skipped: tuple[Path, ...] = field(default=())


Progress = Callable[[FileReport, int], None]


@dataclass(frozen=True)
class Scope:
    """Whose memory it is: a conversation's, a verified customer's, the company's. Rows store its text."""

    kind: ScopeKind
    id: str

    def __str__(self) -> str:
        return f"{self.kind.value}:{self.id}"


def conversation_scope(session_id: UUID, customer: str = "") -> Scope:
    """The scope of a conversation; what is said to a verified customer has its own, closed to the next customer."""
    return Scope(ScopeKind.CONVERSATION, f"{session_id}/{customer}" if customer else str(session_id))


@dataclass(frozen=True)
class Note:
    """A memory to be kept, with its source.

    `reference` is unique in the scope, so a note is kept once. `marked`: its author had read instructions to the
    assistant.
    """

    scope: Scope
    content: str
    source: SourceKind
    reference: str
    taint: Taint = Taint.EXTERNAL
    tier: Tier = Tier.LOW_REINGESTION
    trust: Trust = Trust.WORKING
    memory_type: MemoryType = MemoryType.EPISODE
    session_id: UUID | None = None
    tags: tuple[str, ...] = ()
    entity_refs: tuple[str, ...] = ()
    embedding: list[float] | None = None
    marked: bool = False
