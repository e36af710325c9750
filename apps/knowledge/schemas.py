"""Reports of an ingest, the files that it reads, and what a run of a source is asked to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from apps.knowledge.enums import SourceKind
from apps.knowledge.parsing import Problem


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
    """`skipped` are files of other types that were in a given folder; only a preview may have no collection yet."""

    collection_id: UUID | None
    files: tuple[FileReport, ...] = ()
    skipped: tuple[Path, ...] = ()

    @property
    def counts(self) -> Counter[Outcome]:
        return Counter(outcome for file in self.files for outcome in file.documents)

    @property
    def failed(self) -> tuple[FileReport, ...]:
        return tuple(file for file in self.files if file.problems)


@dataclass(frozen=True)
class IngestPreview(IngestReport):
    """What an ingest would do now: `changes` is each document's outcome by its reference, unchanged ones included."""

    changes: dict[str, Outcome] = field(default_factory=dict)


@dataclass(frozen=True)
class Sources:
    """Files to read, each with the reference it is known by, and those left aside."""

    files: tuple[tuple[Path, str], ...]
    skipped: tuple[Path, ...] = field(default=())


Progress = Callable[[FileReport, int], None]


class SourceRequest(BaseModel):
    """What a run of a source with entries reads, as the submission's content.

    `known` are the documents that the source brought and that the search finds, by their references, each with the
    version that was read; an empty version is read again.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: SourceKind
    location: str
    connection_id: UUID | None = None
    known: dict[str, str]
