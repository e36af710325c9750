"""The card that a classified item comes on: equal values lead to equal bands (spec 5.9)."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.work.confidence import MAX_BATCH, Thresholds, band_of, chunks
from apps.work.enums import Band

USUAL = Thresholds()
ORDER = [Band.LOW, Band.MEDIUM, Band.HIGH]


@pytest.mark.parametrize(
    ("confidence", "band"),
    [
        (1.0, Band.HIGH),
        (0.85, Band.HIGH),
        (math.nextafter(0.85, 0), Band.MEDIUM),
        (0.50, Band.MEDIUM),
        (math.nextafter(0.50, 0), Band.LOW),
        (0.0, Band.LOW),
        (None, Band.NOVEL),
        (math.nan, Band.LOW),
        (math.inf, Band.LOW),
        (1.01, Band.LOW),
        (-0.01, Band.LOW),
    ],
)
def test_band_begins_exactly_at_its_threshold(confidence: float | None, band: Band) -> None:
    assert band_of(confidence, USUAL) is band


@given(st.floats(0, 1), st.floats(0, 1))
def test_more_confidence_never_means_a_lower_band(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert ORDER.index(band_of(low, USUAL)) <= ORDER.index(band_of(high, USUAL))


@pytest.mark.parametrize(
    "wrong",
    [
        {"high_min": 0.4},
        {"high_min": 1.1},
        {"medium_min": -0.1},
        {"high_min": math.nan},
        {"size": 0},
        {"size": MAX_BATCH + 1},
    ],
)
def test_thresholds_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError):
        Thresholds(**wrong)  # type: ignore[arg-type]


@given(st.lists(st.integers(), max_size=120), st.integers(1, MAX_BATCH))
def test_chunks_keep_every_item_in_its_order(items: list[int], size: int) -> None:
    found = list(chunks(items, size))
    assert [each for chunk in found for each in chunk] == items
    assert all(len(chunk) <= size for chunk in found)
