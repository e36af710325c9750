"""Choose who reviews a classified item by its confidence: on a batch, a draft, or a card of its own (spec 5.9).

Confidence chooses the card and never replaces one: no band lets anything run without approval. Policy gates come first.
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
# The floor for earned thresholds: less confident items never go on a batch because of good results (spec 11).
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
    """Return the validation errors of a deployment's own thresholds by field; empty when valid."""
    errors = {
        name: "Enter a number between 0 and 1."
        for name, share in (("high_min", high_min), ("medium_min", medium_min))
        if not 0 <= share <= 1
    }
    if not errors and medium_min > high_min:
        errors["medium_min"] = f"This must not be above {high_min:g}, the minimum for batches."
    if not 1 <= default_size <= MAX_BATCH:
        errors["default_size"] = f"A batch holds 1 to {MAX_BATCH} items."
    return errors


def band_of(confidence: float | None, thresholds: Thresholds) -> Band:
    """Return the band of a confidence. None: no rule or pattern fits. A value outside of 0..1 counts as low."""
    if confidence is None:
        return Band.NOVEL
    # The number may come from a model: infinity must not count as the best.
    if not math.isfinite(confidence) or not 0 <= confidence <= 1:
        return Band.LOW
    if confidence >= thresholds.high_min:
        return Band.HIGH
    return Band.MEDIUM if confidence >= thresholds.medium_min else Band.LOW


def may_relax(*, reversible: bool, risk: Risk) -> bool:
    """Whether good results may reduce an action's cards: never for irreversible or high-risk actions."""
    return reversible and risk in (Risk.LOW, Risk.MEDIUM)


def is_wider(after: Thresholds, before: Thresholds) -> bool:
    """Whether batches became larger, or need less confidence, than before."""
    return after.size > before.size or after.high_min < before.high_min


def stricter_of(one: Thresholds, other: Thresholds) -> Thresholds:
    """Return the stricter of both numbers."""
    return replace(one, high_min=max(one.high_min, other.high_min), size=min(one.size, other.size))


def chunks(items: Sequence[Item], size: int) -> Iterable[Sequence[Item]]:
    """Split the items in order into chunks of `size`; the last chunk holds the rest."""
    return (items[start : start + size] for start in range(0, len(items), size))
