"""Token budgets: context profiles, the arithmetic of a window and its validation (contract silas 7, spec 11).

A profile allocates at most four fifths of what the system zone leaves: the rest is headroom for counting errors
(spec 5.13). An impossible budget is refused on creation, with a code. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType

from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from llm.context.enums import Zone

CHARS_PER_TOKEN = 3.5
MAX_SHARED = Decimal("0.80")
MAX_METADATA_PCT = 0.10


def count_tokens(text: str) -> int:
    """`int(length / 3.5)` (spec 5.13). Length is in UTF-8 bytes: for ASCII that is the characters, and a text in a
    script of one token a character does not slip through at a third of its weight.
    """
    length = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return int(length / CHARS_PER_TOKEN)


def _decimal(share: float) -> Decimal:
    """Exact decimal of a share: 0.29 of 100 is 29, which no float gives."""
    return Decimal(str(share))


@dataclass(frozen=True)
class ContextProfile:
    """Which part of the allocable room each zone gets. Raises `context_profile_invalid`."""

    name: str
    chronicle_pct: float
    memory_pct: float
    workspace_pct: float

    def __post_init__(self) -> None:
        shares = (self.chronicle_pct, self.memory_pct, self.workspace_pct)
        if not self.name or not all(0 <= share <= 1 for share in shares):
            raise SilasError(
                ErrorCode.CONTEXT_PROFILE_INVALID, "A context profile needs a name and shares between 0 and 1."
            )
        if sum(map(_decimal, shares)) > MAX_SHARED:
            raise SilasError(ErrorCode.CONTEXT_PROFILE_INVALID, "The shares of a context profile exceed 0.80 together.")

    def rooms(self, allocable: int) -> Mapping[Zone, int]:
        return {
            Zone.CHRONICLE: int(allocable * _decimal(self.chronicle_pct)),
            Zone.MEMORY: int(allocable * _decimal(self.memory_pct)),
            Zone.WORKSPACE: int(allocable * _decimal(self.workspace_pct)),
        }


PROFILES: Mapping[str, ContextProfile] = MappingProxyType(
    {
        profile.name: profile
        for profile in (
            ContextProfile("conversation", 0.45, 0.20, 0.15),
            ContextProfile("coding", 0.20, 0.20, 0.40),
            ContextProfile("research", 0.20, 0.40, 0.20),
            ContextProfile("support", 0.40, 0.25, 0.15),
        )
    }
)


@dataclass(frozen=True)
class Allotment:
    """Model tokens by zone; `headroom` is allotted to no zone."""

    rooms: Mapping[Zone, int]
    headroom: int


@dataclass(frozen=True)
class TokenBudget:
    """A model's window and how it is kept (contract silas 7, its defaults). Raises `context_budget_invalid`.

    The scorer is asked above `eviction_threshold_pct` (spec 5.7); the contract's `scorer_threshold_pct` says the same
    with another number, and nothing reads it.
    """

    total_tokens: int = 180_000
    system_max: int = 8_000
    skill_metadata_budget_pct: float = 0.02
    eviction_threshold_pct: float = 0.80
    max_subscription_tokens: int = 2_000
    subscription_ttl_turns: int = 10
    observation_mask_after_turns: int = 5
    profiles: Mapping[str, ContextProfile] = field(default_factory=lambda: PROFILES)
    default_profile: str = "conversation"

    def __post_init__(self) -> None:
        for holds, problem in (
            (0 < self.system_max <= self.total_tokens, "system_max must be above 0 and fit into total_tokens"),
            (0 <= self.skill_metadata_budget_pct <= MAX_METADATA_PCT, "skill_metadata_budget_pct is not in 0 to 0.10"),
            (0 < self.eviction_threshold_pct <= 1, "eviction_threshold_pct is not above 0 and at most 1"),
            (self.max_subscription_tokens >= 0, "max_subscription_tokens is negative"),
            (self.subscription_ttl_turns > 0, "subscription_ttl_turns must be above 0"),
            (self.observation_mask_after_turns >= 0, "observation_mask_after_turns is negative"),
            (self.default_profile in self.profiles, "default_profile is not among the profiles"),
        ):
            if not holds:
                raise SilasError(ErrorCode.CONTEXT_BUDGET_INVALID, f"Bad context budget: {problem}.")

    def profile(self, name: str) -> ContextProfile:
        """Raises `context_profile_unknown`: an unknown name gets no silent default."""
        if name not in self.profiles:
            raise SilasError(ErrorCode.CONTEXT_PROFILE_UNKNOWN, "There is no context profile of that name.")
        return self.profiles[name]

    def allotment(self, profile: ContextProfile, *, system_tokens: int) -> Allotment:
        system = min(system_tokens, self.system_max)
        allocable = max(self.total_tokens - system, 0)
        rooms = profile.rooms(allocable)
        return Allotment({Zone.SYSTEM: self.system_max, **rooms}, allocable - sum(rooms.values()))

    @property
    def evict_above(self) -> int:
        return int(self.total_tokens * _decimal(self.eviction_threshold_pct))

    @property
    def metadata_tokens(self) -> int:
        return int(self.total_tokens * _decimal(self.skill_metadata_budget_pct))
