"""Per-conversation settings of the context window: its profile, its subscriptions, where its memory begins. Pure.

Kept as one JSON value on the conversation's row, read when a turn begins and written when it ends. A value from an
earlier version, or one that is no longer valid, reads as the defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from llm.context.budget import PROFILES
from llm.context.subscriptions import Subscription

USUAL = "conversation"


@dataclass(frozen=True)
class Focus:
    """`forgotten`: of what was said up to this `seq` nothing is kept in memory any more. `evicted`: what left a window
    up to this `seq` has gone to memory. `forgettings` counts: a turn sees by it that memories were deleted
    meanwhile."""

    profile: str = USUAL
    subscriptions: tuple[Subscription, ...] = ()
    forgotten: int = 0
    evicted: int = 0
    forgettings: int = 0

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> Focus:
        profile = kept.get("profile", USUAL)
        return cls(
            profile=profile if profile in PROFILES else USUAL,
            subscriptions=tuple(Subscription(**each) for each in kept.get("subscriptions", ())),
            forgotten=int(kept.get("forgotten", 0)),
            evicted=int(kept.get("evicted", 0)),
            forgettings=int(kept.get("forgettings", 0)),
        )

    def as_kept(self) -> dict[str, object]:
        return asdict(self)

    def without_memory(self, seq: int) -> Focus:
        """Mark everything up to `seq` as forgotten."""
        times = self.forgettings + 1
        return replace(self, subscriptions=(), forgotten=seq, evicted=max(self.evicted, seq), forgettings=times)

    @property
    def active(self) -> tuple[Subscription, ...]:
        return tuple(each for each in self.subscriptions if each.active)
