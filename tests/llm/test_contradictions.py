"""Sentences that contradict each other in figures, and sentences that only look alike."""

from __future__ import annotations

import pytest

from llm.offline.contradictions import find_contradiction, statements_with_figures


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("You can return a coat within 30 days of delivery.", "You can return a coat within 14 days of delivery."),
        ("The excess for a cracked windscreen is £75.", "For a cracked windscreen the excess is £115.00."),
        ("Standard delivery to the islands takes 5 days.", "Standard delivery to the islands takes 3 days."),
        ("A late payment of the premium costs 3% a month.", "A late payment of the premium costs 2 per cent a month."),
    ],
)
def test_two_figures_for_the_same_clash(one: str, other: str) -> None:
    assert find_contradiction(one, other) is not None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("You can return a coat within 30 days of delivery.", "You can return a coat within 30 days of delivery."),
        ("You can return a coat within 30 days of delivery.", "Refunds take 5 days."),
        ("You can return a coat within 30 days of delivery.", "You can return a coat of 2 pieces after delivery."),
        ("Standard delivery to the islands costs £5.00.", "Standard delivery to the islands takes 3 days."),
        ("Standard delivery to the islands costs £5.", "Standard delivery to the islands costs £5.00."),
        ("No figures in here at all.", "No figures in here at all, or 5 days."),
    ],
)
def test_what_speaks_of_something_else_does_not_clash(one: str, other: str) -> None:
    assert find_contradiction(one, other) is None


def test_statements_are_the_new_sentences_with_figures() -> None:
    text = "# Returns\n\nCoats within 30 days. No figures. Shoes within 60 days.\n"
    assert statements_with_figures(text, but="Coats within 30 days.\n") == ["Shoes within 60 days."]


@pytest.mark.parametrize("text", ["", "\0", "9" * 5000 + " days", "£" * 4000, "1,2,3,4 days " * 2000])
def test_hostile_text_is_only_text(text: str) -> None:
    assert isinstance(statements_with_figures(text), list)
