"""Cutting a document: offsets that hold to the byte, nothing lost, sections kept apart."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.knowledge.chunks import LONGEST, split

# Pieces of the kind that break byte arithmetic and line arithmetic, joined at random.
_BITS = st.sampled_from(
    ["# ", "## Größe\n", "\n", "\n\n", "\f", "```\n", "~~~\n", " ", "\t", "\u00a0", "\u200b", "\u2028", "\r", "\x1c"]
    + [
        "word ",
        "Überfluss. ",
        "漢字。",
        "🎉",
        "👩‍👩‍👧",
        "e\u0301",
        "- item\n",
        "| a | b |\n",
        "x" * 1300,
        "sentence one. " * 90,
    ]
)
texts = st.one_of(st.text(max_size=400), st.lists(_BITS, max_size=60).map("".join))


@given(texts)
def test_split_any_text_offsets_are_the_bytes_of_the_piece(text: str) -> None:
    stored = text.encode()
    assert [stored[piece.start : piece.end].decode() for piece in split(text)] == [piece.text for piece in split(text)]


@given(texts)
def test_split_any_text_loses_no_visible_character(text: str) -> None:
    assert "".join("".join(piece.text for piece in split(text)).split()) == "".join(text.split())


@given(texts)
def test_split_any_text_never_overlaps(text: str) -> None:
    pieces = split(text)
    assert all(before.end <= after.start for before, after in pairwise(pieces))


@given(texts)
def test_split_any_text_keeps_pieces_short(text: str) -> None:
    assert all(len(piece.text) <= LONGEST for piece in split(text))


@given(texts)
def test_split_any_text_pieces_begin_and_end_with_something_visible(text: str) -> None:
    assert all(piece.text == piece.text.strip() != "" for piece in split(text))


@given(texts, texts)
def test_split_any_title_keeps_the_context_storable(text: str, title: str) -> None:
    assert all(len(piece.context) <= 300 for piece in split(text, title=title))


def test_split_sections_are_kept_apart() -> None:
    pieces = split("# Home\n\n## Fire\n\nPaid.\n\n## Theft\n\nNot paid.")
    assert [piece.text for piece in pieces] == ["# Home\n\n## Fire\n\nPaid.", "## Theft\n\nNot paid."]


def test_split_context_is_title_and_headings_above() -> None:
    pieces = split("# Home\n\n## Fire\n\nPaid.\n\n### Limits\n\n500\n\n## Theft\n\nNo.", title="Home")
    assert [piece.context for piece in pieces] == ["Home / Fire", "Home / Fire / Limits", "Home / Theft"]


def test_split_heading_inside_a_fence_is_text() -> None:
    assert [piece.context for piece in split("# A\n\n```\n# not a heading\n```\n\nb")] == ["A"]


def test_split_unclosed_fence_still_ends_with_the_page() -> None:
    assert [piece.text for piece in split("```\na\fb")] == ["```\na", "b"]


def test_split_pages_are_named_in_the_context() -> None:
    assert [piece.context for piece in split("one\ftwo", title="Booklet")] == ["Booklet / page 1", "Booklet / page 2"]


def test_split_long_heading_line_is_no_trap() -> None:
    assert split("# " + "a # " * 50_000 + "\n\nbody")[-1].text.endswith("\n\nbody")


def test_split_closing_marks_do_not_belong_to_a_heading() -> None:
    assert split("## Fire ##\n\nPaid.")[0].context == "Fire"


@pytest.mark.parametrize("text", ["", " \n\t\f ", "\u2003\n"])
def test_split_invisible_text_has_no_piece(text: str) -> None:
    assert split(text) == []


def test_split_long_paragraph_is_cut_between_sentences() -> None:
    pieces = split("This is a sentence of some length. " * 60)
    assert all(piece.text.endswith("length.") for piece in pieces)
