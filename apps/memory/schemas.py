"""Scopes of memories, and notes that are to be kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from apps.memory.enums import ScopeKind, SourceKind, Tier, Trust
from kernel.taint import Taint
from llm.enums import MemoryType


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
    assistant. `valid_until`: when it ends, if earlier than memories of its tier end.
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
    valid_until: datetime | None = None
