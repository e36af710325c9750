"""Who sees a classified item: a batch, a draft, somebody's attention, or a teacher? Decided from values (spec 5.9).

Confidence chooses the card and never replaces one: no band lets anything run without a yes. Policy gates come first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from apps.approvals.enums import Risk
from apps.work.enums import Band

Item = TypeVar("Item")
MAX_BATCH = 50
# However well a family of actions goes: what is less sure than this is never in a batch of its own accord (spec 11).
MIN_EARNED_HIGH = 0.70


@dataclass(frozen=True)
class Thresholds:
    """Where the bands begin (both inclusive), and how many items a batch holds."""

    high_min: float = 0.85
    medium_min: float = 0.50
    size: int = 10

    def __post_init__(self) -> None:
        if not 0 <= self.medium_min <= self.high_min <= 1:
            raise ValueError("0 <= medium_min <= high_min <= 1")
        if not 1 <= self.size <= MAX_BATCH:
            raise ValueError(f"a batch holds 1 to {MAX_BATCH} items")


def threshold_errors(*, high_min: float, medium_min: float, default_size: int) -> dict[str, str]:
    """Why these could not be a deployment's own, by the field; empty when they can."""
    found = {
        name: "A share between 0 and 1."
        for name, share in (("high_min", high_min), ("medium_min", medium_min))
        if not 0 <= share <= 1
    }
    if not found and medium_min > high_min:
        found["medium_min"] = f"This must be not above {high_min:g}, from where on things come in batches."
    if not 1 <= default_size <= MAX_BATCH:
        found["default_size"] = f"A batch holds 1 to {MAX_BATCH} items."
    return found


def band_of(confidence: float | None, thresholds: Thresholds) -> Band:
    """`confidence` None: no rule or pattern fits. What is no share of one is as good as no confidence: low."""
    if confidence is None:
        return Band.NOVEL
    if not math.isfinite(confidence) or not 0 <= confidence <= 1:
        return Band.LOW
    if confidence >= thresholds.high_min:
        return Band.HIGH
    return Band.MEDIUM if confidence >= thresholds.medium_min else Band.LOW


def may_relax(*, reversible: bool, risk: Risk) -> bool:
    """Whether an action's cards may become fewer because people rarely correct them: never what cannot be taken back,
    and never what is grave."""
    return reversible and risk in (Risk.LOW, Risk.MEDIUM)


def is_wider(after: Thresholds, before: Thresholds) -> bool:
    """Whether anything comes before people in larger batches, or less sure, than it did."""
    return after.size > before.size or after.high_min < before.high_min


def stricter_of(one: Thresholds, other: Thresholds) -> Thresholds:
    return replace(one, high_min=max(one.high_min, other.high_min), size=min(one.size, other.size))


def chunks(items: Sequence[Item], size: int) -> Iterable[Sequence[Item]]:
    """The items in their order, `size` at a time; the last chunk holds the rest."""
    return (items[start : start + size] for start in range(0, len(items), size))
