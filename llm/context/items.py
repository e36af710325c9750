"""Items of a context window and the records of what was evicted. Frozen values (contract silas 7, ContextItem).

`token_count` is computed here, with the item's frame, and never passed by a caller: a window of 5,000 empty messages is
not empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kernel.taint import Taint
from llm.context.budget import Allotment, count_tokens
from llm.context.enums import Kind, Reason, Zone

# `--- turn 12 | visitor | untrusted ---`, `--- end ---` and the blank line behind it.
FRAME_TOKENS = 14
# A record names that many evictions one by one and counts the others.
RECORDED_EVICTIONS = 100


@dataclass(frozen=True, slots=True)
class ContextItem:
    """One block of a window.

    `group` holds a tool call together with its results: all stay or all leave; "" stands alone. `turn` is when it was
    said, for a subscription when it was last referred to. `relevance` is the retriever's (memory). `finished` is a
    plan that is over. `tool` and `failed` are what a masked result still tells.
    """

    ctx_id: str
    zone: Zone
    kind: Kind
    content: str
    turn: int = 0
    source: str = ""
    taint: Taint = Taint.EXTERNAL
    group: str = ""
    relevance: float = 1.0
    pinned: bool = False
    finished: bool = False
    tool: str = ""
    failed: bool = False
    masked: bool = False
    token_count: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "token_count", count_tokens(self.content) + FRAME_TOKENS)

    def record(self) -> dict[str, Any]:
        """Where its text is kept, and what a reader of the window must know of it; no text."""
        marks = {"masked": self.masked, "pinned": self.pinned}
        fields = {"id": self.ctx_id, "kind": self.kind.value, "tokens": self.token_count, "taint": self.taint.value}
        return fields | {name: True for name, set_ in marks.items() if set_}

    def masked_as(self, placeholder: str) -> ContextItem:
        """The same with its placeholder (written out: `dataclasses.replace` takes three times as long)."""
        return ContextItem(
            self.ctx_id,
            self.zone,
            self.kind,
            placeholder,
            self.turn,
            self.source,
            self.taint,
            self.group,
            self.relevance,
            self.pinned,
            self.finished,
            self.tool,
            self.failed,
            masked=True,
        )


class Eviction(NamedTuple):
    """What left, or was replaced by its placeholder, and why; `tokens` is what it took before. Holds no text."""

    ctx_id: str
    zone: Zone
    kind: Kind
    tokens: int
    reason: Reason
    taint: Taint

    def record(self) -> dict[str, Any]:
        return {
            "id": self.ctx_id,
            "zone": self.zone.value,
            "kind": self.kind.value,
            "tokens": self.tokens,
            "reason": self.reason.value,
            "taint": self.taint.value,
        }


@dataclass(frozen=True)
class Window:
    """What a model sees, in the order given, with what was left out on the way."""

    items: tuple[ContextItem, ...]
    evicted: tuple[Eviction, ...]
    used: Mapping[Zone, int]
    allotment: Allotment
    profile: str

    @property
    def total(self) -> int:
        return sum(self.used.values())

    def record(self) -> dict[str, Any]:
        """The window as ids, marks and counts, fit for JSON: no text. Its size is bounded."""
        return {
            "profile": self.profile,
            "zones": {zone.value: self._zone(zone) for zone in Zone},
            "headroom": self.allotment.headroom,
            "evicted": [gone.record() for gone in self.evicted[-RECORDED_EVICTIONS:]],
            "evicted_count": len(self.evicted),
        }

    def _zone(self, zone: Zone) -> dict[str, Any]:
        mine = [item for item in self.items if item.zone is zone]
        return {
            "tokens": self.used[zone],
            "room": self.allotment.rooms[zone],
            "count": len(mine),
            "items": [item.record() for item in mine[-RECORDED_EVICTIONS:]],
        }
