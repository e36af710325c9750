"""Shapes of what runs unattended: what a task may spend, where its result goes, what a trigger waits for.

All frozen; stored as JSON and read back through these, so that a row never says more than they allow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter

from apps.autonomy.enums import Severity, SpawnRefusal, Topic
from apps.guard.schemas import Limits
from kernel.llm.enums import MemoryType
from kernel.unicode_safety import replace_unstorable

Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300)]
Prose = Annotated[str, Field(max_length=8000)]
# Absurd is refused where it is typed; 0 is a real cap and stops the first call that costs or counts.
MOST_USD, MOST_CALLS, MOST_TOKENS, MOST_SECONDS, MOST_WRITES = Decimal(1000), 1000, 10_000_000, 86_400, 1000


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TaskLimits(Frozen):
    """What one session may use. None is: not said here; of all that are said the smallest holds."""

    cost_usd: Decimal | None = Field(default=None, ge=0, le=MOST_USD, max_digits=18, decimal_places=9)
    calls: int | None = Field(default=None, ge=0, le=MOST_CALLS)
    tokens: int | None = Field(default=None, ge=0, le=MOST_TOKENS)
    wall_seconds: int | None = Field(default=None, ge=0, le=MOST_SECONDS)
    memory_writes: int | None = Field(default=None, ge=0, le=MOST_WRITES)

    @property
    def guards(self) -> Limits:
        """The part that the guard holds."""
        return Limits(**self.model_dump(exclude={"memory_writes"}))


# Contract B1. The guard counts model runs, findings and the notice as calls too, hence more than B's ten.
DEFAULT_LIMITS = TaskLimits(cost_usd=Decimal("0.50"), calls=25, tokens=50_000, wall_seconds=300, memory_writes=10)


class Silent(Frozen):
    kind: Literal["silent"] = "silent"


class Notify(Frozen):
    """In the console always: that row is the record. The others when they are wanted and set up."""

    kind: Literal["notify"] = "notify"
    email: bool = False
    webhook: bool = False


class MemoryUpdate(Frozen):
    """The result is proposed to be remembered; a person keeps it."""

    kind: Literal["memory_update"] = "memory_update"


class ChainNext(Frozen):
    """Another task begins inside what this session has left; with `with_context` it is told this one's result, as text
    of a stranger."""

    kind: Literal["chain_next"] = "chain_next"
    task: UUID
    with_context: bool = True


Route = Annotated[Silent | Notify | MemoryUpdate | ChainNext, Field(discriminator="kind")]
ROUTE: TypeAdapter[Silent | Notify | MemoryUpdate | ChainNext] = TypeAdapter(Route)


class CronSpec(Frozen):
    """Five fields, in the tenant's time."""

    schedule: str = Field(min_length=9, max_length=120)


class IntervalSpec(Frozen):
    seconds: int = Field(ge=60, le=31_536_000)


class EventSpec(Frozen):
    topic: Topic


class WatchSpec(Frozen):
    """A collection of documents."""

    collection: UUID


class ChainSpec(Frozen):
    """Another task, whose completed sessions begin this one. `with_context` as in `ChainNext`."""

    after: UUID
    with_context: bool = True


class GoalCheckSpec(Frozen):
    """A goal of the work room: each look at it that was not healthy begins a session (all looks with `healthy`)."""

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
    """None was, and why."""

    code: SpawnRefusal

    @property
    def reason(self) -> str:
        return str(self.code.label)


Spawn = Spawned | NotSpawned


class Source(Frozen):
    """A place in a document version, as citations name it."""

    document_id: str
    version_id: str
    title: str = ""
    url: str = ""
    start: int = Field(ge=0)
    end: int = Field(gt=0)
    quote: str = ""


class DraftFinding(Frozen):
    title: Line
    content: Prose = ""
    severity: Severity = Severity.INFO
    sources: tuple[Source, ...] = ()


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
    """What another task is asked, in a model's words."""

    task: UUID
    question: str = Field(default="", max_length=1000)


class Draft(Frozen):
    """What analysis came to, whoever made it: drafting writes each of it down by a guarded call. `awaits`: the work
    that a person is asked about; `reviewed`: the open questions that were gone through; `signal`: that somebody more
    capable should look."""

    summary: Prose = ""
    findings: tuple[DraftFinding, ...] = Field(default=(), max_length=50)
    proposals: tuple[DraftProposal, ...] = Field(default=(), max_length=50)
    precedents: tuple[DraftPrecedent, ...] = Field(default=(), max_length=50)
    signal: str = Field(default="", max_length=40)
    healthy: bool = False
    awaits: str = Field(default="", max_length=40)
    reviewed: tuple[str, ...] = Field(default=(), max_length=50)
    delegated: tuple[DelegatedQuestion, ...] = Field(default=(), max_length=3)


@dataclass(frozen=True)
class Occasion:
    """An occasion on which a session shall begin. `key` is unique in the tenant: the same occasion begins nothing
    twice."""

    key: str
    params: Mapping[str, Any] = field(default_factory=dict)


def storable_text(text: str, most: int) -> str:
    """What a row can keep of a text that somebody else wrote."""
    return replace_unstorable(text)[:most].strip()
