"""When a family of actions should need fewer approvals, and when more. Decided from values alone.

The result is only ever a proposal. The rate `(edits + declines + undos) / all decisions` is compared exactly, both
thresholds inclusive: at or below `widen_max` approvals may be reduced, at or above `tighten_min` increased (spec 5.1.6,
5.9, 11). Decisions from before the last change or proposal do not count, so a change needs `min_samples` new ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction

from apps.approvals.enums import Risk
from apps.suggestions.enums import OutcomeKind
from apps.work.enums import Direction
from kernel.language import gettext

# Later ones outweigh earlier ones: an action that was approved and then undone was corrected.
RANK = (OutcomeKind.APPROVED, OutcomeKind.EDIT_SELECTION, OutcomeKind.DECLINED, OutcomeKind.UNDO)
CORRECTIONS = frozenset(RANK[1:])
_HIGH_RISKS = frozenset({Risk.HIGH.value, Risk.IRREVERSIBLE.value})


@dataclass(frozen=True)
class CalibrationConfig:
    """Thresholds of calibration. `hysteresis`: how much below `widen_max` the rate must be after a tightening."""

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
    """The decisions that a proposal rests on. `has_high_risk`: one of the actions was of high risk."""

    samples: int
    corrections: int
    has_high_risk: bool

    @property
    def rate(self) -> Fraction:
        return Fraction(self.corrections, self.samples) if self.samples else Fraction(0)


def config_problems(config: CalibrationConfig) -> dict[str, str]:
    """What is wrong with this configuration, by field; empty when it is valid (spec 11, fail-fast)."""
    problems = {
        name: gettext("Enter a share between 0 and 1.")
        for name in ("widen_max", "tighten_min", "hysteresis")
        if not 0 <= getattr(config, name) <= 1
    }
    if not problems and _exact(config.widen_max) + _exact(config.hysteresis) > _exact(config.tighten_min):
        problems["tighten_min"] = gettext("This must exceed the widening threshold by at least the hysteresis.")
    if not problems and config.widen_max >= config.tighten_min:
        problems["tighten_min"] = gettext("This must exceed the widening threshold.")
    if not 1 <= config.min_samples <= config.window_actions:
        problems["min_samples"] = gettext("Enter at least 1, and not more than the window contains.")
    if not 1 <= config.window_days <= 365:
        problems["window_days"] = gettext("Enter 1 to 365 days.")
    return problems


def collect_evidence(
    actions: Sequence[DecidedAction], config: CalibrationConfig, *, now: datetime, since: datetime | None
) -> Evidence:
    """The newest decisions inside the window that are later than `since`."""
    start = now - timedelta(days=config.window_days)
    recent = [action for action in actions if start <= action.at <= now and (since is None or action.at > since)]
    newest = sorted(recent, key=lambda action: action.at, reverse=True)[: config.window_actions]
    return Evidence(
        samples=len(newest),
        corrections=sum(action.kind in CORRECTIONS for action in newest),
        has_high_risk=any(action.risk in _HIGH_RISKS for action in newest),
    )


def proposed_direction(evidence: Evidence, config: CalibrationConfig, *, last: Direction | None) -> Direction | None:
    """Which way to propose a change; None with too few samples, or with a rate between the thresholds."""
    if evidence.samples < config.min_samples:
        return None
    if evidence.rate >= _exact(config.tighten_min):
        return Direction.TIGHTEN
    if not evidence.has_high_risk and evidence.rate <= _widen_threshold(config, last):
        return Direction.WIDEN
    return None


def _widen_threshold(config: CalibrationConfig, last: Direction | None) -> Fraction:
    """After a tightening the rate must be lower by the hysteresis: with 0.05 and 0.05, without any correction."""
    edge = _exact(config.widen_max)
    return max(Fraction(0), edge - _exact(config.hysteresis)) if last is Direction.TIGHTEN else edge


def _exact(share: float) -> Fraction:
    """0.05 as exactly one in twenty, not as the nearest binary number."""
    return Fraction(str(share))
