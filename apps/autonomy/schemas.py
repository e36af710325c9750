"""Schemas of automations: what a task may spend, where its result goes, what a trigger waits for.

All are frozen, stored as JSON and validated again when they are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, model_validator

from apps.autonomy.enums import ArtifactKind, Severity, SpawnRefusal, Topic
from apps.guard.schemas import Limits
from kernel.unicode_safety import replace_unstorable
from llm.enums import MemoryType
from llm.schemas import Citation

Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300)]
Prose = Annotated[str, Field(max_length=8000)]
Cell = Annotated[str, Field(max_length=500)]
MOST_ARTIFACT_CHARACTERS, MOST_ROWS = 60_000, 500
# Upper bounds that catch typing errors. 0 is a real limit and stops the first call that costs or counts.
MOST_USD, MOST_CALLS, MOST_TOKENS, MOST_SECONDS, MOST_WRITES = Decimal(1000), 1000, 10_000_000, 86_400, 1000


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TaskLimits(Frozen):
    """What one session may use. None means not set here; of all limits that are set, the smallest applies."""

    cost_usd: Decimal | None = Field(default=None, ge=0, le=MOST_USD, max_digits=18, decimal_places=9)
    calls: int | None = Field(default=None, ge=0, le=MOST_CALLS)
    tokens: int | None = Field(default=None, ge=0, le=MOST_TOKENS)
    wall_seconds: int | None = Field(default=None, ge=0, le=MOST_SECONDS)
    memory_writes: int | None = Field(default=None, ge=0, le=MOST_WRITES)

    @property
    def guards(self) -> Limits:
        """The part that the guard enforces."""
        return Limits(**self.model_dump(exclude={"memory_writes"}))


# Contract B1. The guard counts model runs, findings and the notice as calls too, hence more than B's ten.
# 25 calls where the contract has 10, because everything that the guard admits counts, findings and the notice too.
DEFAULT_LIMITS = TaskLimits(cost_usd=Decimal("0.50"), calls=25, tokens=50_000, wall_seconds=300, memory_writes=10)


class Silent(Frozen):
    kind: Literal["silent"] = "silent"


class Notify(Frozen):
    """Notify the owner: always in the console, whose notice is the record; by email and webhook if asked for."""

    kind: Literal["notify"] = "notify"
    email: bool = False
    webhook: bool = False


class MemoryUpdate(Frozen):
    """Propose the result for memory; a person decides whether it is kept."""

    kind: Literal["memory_update"] = "memory_update"


class ChainNext(Frozen):
    """Start another task within the limits that this session has left.

    With `with_context` it is given this session's result, as external text.
    """

    kind: Literal["chain_next"] = "chain_next"
    task: UUID
    with_context: bool = True


Route = Annotated[Silent | Notify | MemoryUpdate | ChainNext, Field(discriminator="kind")]
ROUTE: TypeAdapter[Silent | Notify | MemoryUpdate | ChainNext] = TypeAdapter(Route)


class CronSpec(Frozen):
    """A cron schedule of five fields, in the tenant's time zone."""

    schedule: str = Field(min_length=9, max_length=120)


class IntervalSpec(Frozen):
    seconds: int = Field(ge=60, le=31_536_000)


class EventSpec(Frozen):
    topic: Topic


class WatchSpec(Frozen):
    """A collection whose new documents start the task."""

    collection: UUID


class ChainSpec(Frozen):
    """Another task, whose completed sessions start this one. `with_context` as in `ChainNext`."""

    after: UUID
    with_context: bool = True


class GoalCheckSpec(Frozen):
    """A goal of the work room: each check that was not healthy starts a session (every check with `healthy`)."""

    goal: UUID
    healthy: bool = False


class ManualSpec(Frozen):
    pass


@dataclass(frozen=True)
class Spawned:
    """A session was queued."""

    session_id: UUID


@dataclass(frozen=True)
class NotSpawned:
    """No session was queued, and why."""

    code: SpawnRefusal

    @property
    def reason(self) -> str:
        return str(self.code.label)


Spawn = Spawned | NotSpawned


class Source(Frozen):
    """A passage of a document version, as citations name it. `start` and `end` are byte offsets."""

    document_id: str
    version_id: str
    title: str = ""
    url: str = ""
    start: int = Field(ge=0)
    end: int = Field(gt=0)
    quote: str = ""

    @classmethod
    def of(cls, citation: Citation) -> Source:
        """A run cites documents only: it has no visitor who could send a file."""
        return cls.model_validate(citation.model_dump(exclude={"is_file"}))


class DraftFinding(Frozen):
    """`key` is what the finding is about, the same in every run; empty where a run cannot tell."""

    title: Line
    content: Prose = ""
    severity: Severity = Severity.INFO
    sources: tuple[Source, ...] = ()
    key: str = Field(default="", max_length=64)


class DraftArtifact(Frozen):
    """A document, table or text that a run hands over whole; a table has `columns` and `rows`, the others `content`."""

    title: Line
    kind: ArtifactKind = ArtifactKind.MARKDOWN
    content: str = Field(default="", max_length=MOST_ARTIFACT_CHARACTERS)
    columns: tuple[Cell, ...] = Field(default=(), max_length=20)
    rows: tuple[tuple[Cell, ...], ...] = Field(default=(), max_length=MOST_ROWS)

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if bool(self.columns) is not (self.kind is ArtifactKind.TABLE) or any(
            len(row) != len(self.columns) for row in self.rows
        ):
            raise ValueError("a table has columns, and as many cells in each row")
        return self


class DraftProposal(Frozen):
    """`kind` is a `ProposalKind`; `target` what it would be added to (a collection's name), where there is a choice."""

    kind: Literal["memory", "knowledge", "preference"]
    title: Line
    content: Annotated[str, Field(min_length=1, max_length=8000)]
    memory_type: MemoryType = MemoryType.FACT
    target: str = Field(default="", max_length=80)
    evidence: dict[str, Any] = Field(default_factory=dict)


class DraftPrecedent(Frozen):
    pattern_kind: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
    summary: Line
    evidence: dict[str, Any] = Field(default_factory=dict)


class DelegatedQuestion(Frozen):
    """A question to another task, in a model's words."""

    task: UUID
    question: str = Field(default="", max_length=1000)


class Draft(Frozen):
    """The result of analysis, from a model or a built-in workflow; drafting writes each part by a guarded call.

    `awaits`: id of the work item that waits for a person's approval; `reviewed`: ids of the open questions that were
    reviewed; `signal`: set when a more capable task should take over; `present`: the keys of all findings that are true
    now, after which earlier ones of the task are gone (None: the run saw only a part); `quiet`: nothing is new, so
    no one is notified.
    """

    summary: Prose = ""
    findings: tuple[DraftFinding, ...] = Field(default=(), max_length=50)
    proposals: tuple[DraftProposal, ...] = Field(default=(), max_length=50)
    precedents: tuple[DraftPrecedent, ...] = Field(default=(), max_length=50)
    artifacts: tuple[DraftArtifact, ...] = Field(default=(), max_length=5)
    signal: str = Field(default="", max_length=40)
    healthy: bool = False
    awaits: str = Field(default="", max_length=40)
    reviewed: tuple[str, ...] = Field(default=(), max_length=50)
    delegated: tuple[DelegatedQuestion, ...] = Field(default=(), max_length=3)
    present: tuple[str, ...] | None = Field(default=None, max_length=2000)
    quiet: bool = False


@dataclass(frozen=True)
class Occasion:
    """The reason for which a session is started. `key` is unique in the tenant: one occasion starts one session."""

    key: str
    params: Mapping[str, Any] = field(default_factory=dict)


def storable_text(text: str, most: int) -> str:
    """Make text of unknown origin storable: without characters that PostgreSQL refuses, cut to `most` characters."""
    return replace_unstorable(text)[:most].strip()
