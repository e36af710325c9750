"""When fewer approvals are proposed: thresholds, windows, minimum samples, hysteresis, and the maximum rate."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.suggestions.calibration_policy import (
    CalibrationConfig,
    DecidedAction,
    Evidence,
    collect_evidence,
    config_problems,
    proposed_direction,
)
from apps.suggestions.enums import OutcomeKind
from apps.work.enums import Direction

NOW = datetime(2026, 3, 1, tzinfo=UTC)
USUAL = CalibrationConfig()
WIDEN, TIGHTEN = Direction.WIDEN, Direction.TIGHTEN


def direction_for(
    corrections: int, samples: int, *, last: Direction | None = None, grave: bool = False
) -> Direction | None:
    return proposed_direction(Evidence(samples, corrections, grave), USUAL, last=last)


@pytest.mark.parametrize(
    ("corrections", "samples", "direction"),
    [
        (0, 29, None),  # one too few
        (29, 29, None),  # one too few, however bad
        (0, 30, WIDEN),
        (2, 40, WIDEN),  # exactly 0.05: the edge counts
        (3, 50, None),  # 0.06
        (6, 30, TIGHTEN),  # exactly 0.20: the edge counts
        (9, 46, None),  # 0.1956
        (50, 50, TIGHTEN),
    ],
)
def test_rate_at_the_edge_decides_as_documented(corrections: int, samples: int, direction: Direction | None) -> None:
    assert direction_for(corrections, samples) == direction


def test_edge_is_compared_exactly_and_not_in_binary() -> None:
    """0.1 + 0.2 is more than 0.3 in binary; three of ten is exactly 0.3."""
    config = CalibrationConfig(min_samples=10, widen_max=0.3, tighten_min=0.6, hysteresis=0.1)
    assert proposed_direction(Evidence(10, 3, False), config, last=None) == WIDEN


def test_family_that_was_tightened_must_go_without_a_fault() -> None:
    assert direction_for(1, 50, last=TIGHTEN) is None
    assert direction_for(0, 50, last=TIGHTEN) == WIDEN


def test_grave_actions_are_never_widened() -> None:
    assert direction_for(0, 50, grave=True) is None


def test_grave_actions_are_tightened_all_the_same() -> None:
    assert direction_for(25, 50, grave=True) == TIGHTEN


def decided(kind: OutcomeKind, days: float, risk: str = "medium") -> DecidedAction:
    return DecidedAction(kind, risk, NOW - timedelta(days=days))


def test_what_is_older_than_the_window_is_no_evidence() -> None:
    found = collect_evidence(
        [decided(OutcomeKind.DECLINED, 14.01), decided(OutcomeKind.APPROVED, 14)], USUAL, now=NOW, since=None
    )
    assert found == Evidence(1, 0, False)


def test_only_the_newest_of_many_are_evidence() -> None:
    rows = [decided(OutcomeKind.DECLINED, 10)] * 40 + [decided(OutcomeKind.APPROVED, 1)] * 50
    assert collect_evidence(rows, USUAL, now=NOW, since=None).corrections == 0


def test_what_was_decided_before_the_last_change_is_no_evidence() -> None:
    rows = [decided(OutcomeKind.APPROVED, days) for days in (1, 2, 3)]
    assert collect_evidence(rows, USUAL, now=NOW, since=NOW - timedelta(days=2)).samples == 1


def test_what_claims_to_come_from_the_future_is_no_evidence() -> None:
    assert collect_evidence([decided(OutcomeKind.APPROVED, -1)], USUAL, now=NOW, since=None).samples == 0


def test_dismissal_is_no_correction() -> None:
    assert collect_evidence([decided(OutcomeKind.DISMISSED, 1)], USUAL, now=NOW, since=None).corrections == 0


@pytest.mark.parametrize(
    ("config", "field"),
    [
        (CalibrationConfig(widen_max=0.2, tighten_min=0.2), "tighten_min"),
        (CalibrationConfig(widen_max=0.2, tighten_min=0.1), "tighten_min"),
        (CalibrationConfig(widen_max=0.18, tighten_min=0.2, hysteresis=0.05), "tighten_min"),
        (CalibrationConfig(widen_max=-0.1), "widen_max"),
        (CalibrationConfig(tighten_min=1.1), "tighten_min"),
        (CalibrationConfig(widen_max=float("nan")), "widen_max"),
        (CalibrationConfig(min_samples=0), "min_samples"),
        (CalibrationConfig(min_samples=51, window_actions=50), "min_samples"),
        (CalibrationConfig(window_days=0), "window_days"),
    ],
)
def test_settings_that_could_oscillate_are_refused(config: CalibrationConfig, field: str) -> None:
    assert field in config_problems(config)


def test_usual_settings_make_sense() -> None:
    assert config_problems(USUAL) == {}


@settings(max_examples=60)
@given(st.lists(st.booleans(), min_size=1, max_size=400), st.integers(10, 30))
def test_whatever_people_do_changes_are_bounded(faults: list[bool], samples: int) -> None:
    """Everybody says yes to everything that is proposed, at once: still at most one change for `min_samples` decisions,
    and after a tightening nothing is widened on evidence with a fault in it."""
    config = CalibrationConfig(min_samples=samples, window_actions=samples + 20)
    rows: list[DecidedAction] = []
    changes: list[tuple[Direction, Evidence]] = []
    since: datetime | None = None
    for number, fault in enumerate(faults):
        at = NOW + timedelta(minutes=number)
        rows.append(DecidedAction(OutcomeKind.DECLINED if fault else OutcomeKind.APPROVED, "medium", at))
        found = collect_evidence(rows, config, now=at, since=since)
        direction = proposed_direction(found, config, last=changes[-1][0] if changes else None)
        if direction is not None:
            changes.append((direction, found))
            since = at
    assert len(changes) <= len(faults) // samples
    assert all(
        after[1].corrections == 0 for before, after in pairwise(changes) if (before[0], after[0]) == (TIGHTEN, WIDEN)
    )


@given(st.integers(0, 60), st.integers(0, 60))
def test_one_more_correction_never_speaks_for_fewer_cards(corrections: int, samples: int) -> None:
    order = [WIDEN, None, TIGHTEN]
    fewer, more = (
        direction_for(min(corrections, samples), samples),
        direction_for(min(corrections + 1, samples), samples),
    )
    assert order.index(fewer) <= order.index(more)
