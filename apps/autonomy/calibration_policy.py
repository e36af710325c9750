"""When has a family of actions earned fewer cards, and when more? Decided from values alone; no clock, no database.

Always holds: this only ever proposes. `(edits + declines + undos) / all decisions`, compared exactly; both edges count:
at or below `widen_max` it may be widened, at or above `tighten_min` tightened (spec 5.1.6, 5.9, 11). What was decided
before the last change or the last proposal is evidence no more, so a change needs `min_samples` new decisions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction

from apps.approvals.enums import Risk
from apps.autonomy.enums import OutcomeKind
from apps.work.enums import Direction

# What stands later outweighs what stands before it: an action that was approved and then undone was corrected.
RANK = (OutcomeKind.APPROVED, OutcomeKind.EDIT_SELECTION, OutcomeKind.DECLINED, OutcomeKind.UNDO)
CORRECTIONS = frozenset(RANK[1:])
_GRAVE = frozenset({Risk.HIGH.value, Risk.IRREVERSIBLE.value})


@dataclass(frozen=True)
class CalibrationConfig:
    """`hysteresis`: how much better than `widen_max` it must go after it was tightened."""

    min_samples: int = 30
    window_actions: int = 50
    window_days: int = 14
    widen_max: float = 0.05
    tighten_min: float = 0.20
    hysteresis: float = 0.05


@dataclass(frozen=True)
class DecidedAction:
    """One decided action."""

    kind: OutcomeKind
    risk: str
    at: datetime


@dataclass(frozen=True)
class Evidence:
    """What there is to judge by."""

    samples: int
    corrections: int
    grave: bool

    @property
    def rate(self) -> Fraction:
        return Fraction(self.corrections, self.samples) if self.samples else Fraction(0)


def config_problems(config: CalibrationConfig) -> dict[str, str]:
    """Why these could not be a company's own, by the field; empty when they can (spec 11, fail-fast)."""
    found = {
        name: "A share between 0 and 1."
        for name in ("widen_max", "tighten_min", "hysteresis")
        if not 0 <= getattr(config, name) <= 1
    }
    if not found and _exact(config.widen_max) + _exact(config.hysteresis) > _exact(config.tighten_min):
        found["tighten_min"] = "This must be above where it is widened, by the distance between the two at least."
    if not found and config.widen_max >= config.tighten_min:
        found["tighten_min"] = "This must be above where it is widened."
    if not 1 <= config.min_samples <= config.window_actions:
        found["min_samples"] = "At least 1, and not more than the window holds."
    if not 1 <= config.window_days <= 365:
        found["window_days"] = "1 to 365 days."
    return found


def collect_evidence(
    seen: Sequence[DecidedAction], config: CalibrationConfig, *, now: datetime, since: datetime | None
) -> Evidence:
    """The newest decisions inside the window that are younger than `since`."""
    start = now - timedelta(days=config.window_days)
    fresh = [each for each in seen if start <= each.at <= now and (since is None or each.at > since)]
    newest = sorted(fresh, key=lambda each: each.at, reverse=True)[: config.window_actions]
    return Evidence(
        samples=len(newest),
        corrections=sum(each.kind in CORRECTIONS for each in newest),
        grave=any(each.risk in _GRAVE for each in newest),
    )


def proposed_direction(found: Evidence, config: CalibrationConfig, *, last: Direction | None) -> Direction | None:
    """Which way to propose; None while there is too little to judge by, or nothing to say."""
    if found.samples < config.min_samples:
        return None
    if found.rate >= _exact(config.tighten_min):
        return Direction.TIGHTEN
    if not found.grave and found.rate <= _widen_below(config, last):
        return Direction.WIDEN
    return None


def _widen_below(config: CalibrationConfig, last: Direction | None) -> Fraction:
    """After it was tightened it has to go better than before, by the hysteresis: at 0.05 and 0.05, without a fault."""
    edge = _exact(config.widen_max)
    return max(Fraction(0), edge - _exact(config.hysteresis)) if last is Direction.TIGHTEN else edge


def _exact(share: float) -> Fraction:
    """0.05 is meant as one in twenty, not as the nearest binary number."""
    return Fraction(str(share))
