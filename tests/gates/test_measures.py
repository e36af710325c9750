"""What `make eval-gates` counts: a place that is found in part is right by overlap, wrong to the letter."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tools.eval_corpora import Labelled
from tools.eval_gates import Counts, by_word, exact, overlapping

TEXT = "Please ask Mr. Jean-Luc O'Neil."
WHOLE, LAST = "Jean-Luc O'Neil", "O'Neil"


def case(text: str, *words: str) -> Labelled:
    places = ((text.index(word), text.index(word) + len(word), "PERSON") for word in words)
    return Labelled(text, tuple(places), held_back=False)


@pytest.mark.parametrize(
    ("count", "labelled", "expected"),
    [
        (overlapping, case(TEXT, WHOLE), (1, 0, 0)),
        (overlapping, case(TEXT, LAST), (1, 0, 0)),
        (overlapping, case(TEXT), (0, 0, 1)),
        (exact, case(TEXT, WHOLE), (1, 0, 0)),
        (exact, case(TEXT, LAST), (0, 1, 1)),
        (exact, case("ask nobody", "nobody"), (0, 1, 0)),
        (by_word, case(TEXT, WHOLE), (4, 0, 0)),
        (by_word, case(TEXT, LAST), (2, 0, 2)),
        (by_word, case("ask nobody at all", "nobody at"), (0, 2, 0)),
    ],
)
def test_place_is_counted_by_each_measure(
    count: Callable[[list[Labelled]], Counts], labelled: Labelled, expected: tuple[int, int, int]
) -> None:
    right, missed, wrong = (counts["PERSON"] for counts in count([labelled]))
    assert (right, missed, wrong) == expected


def test_other_kind_in_the_same_place_is_missed_and_wrong() -> None:
    labelled = Labelled("write to jo@example.org", ((9, 23, "PERSON"),), held_back=False)
    for count in (overlapping, exact):
        right, missed, wrong = count([labelled])
        assert right.total() == 0
        assert missed["PERSON"] == 1
        assert wrong["EMAIL"] == 1
