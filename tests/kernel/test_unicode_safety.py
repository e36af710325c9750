"""What a person sees is what is bound: texts that look different from what they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.unicode_safety import escape_hidden, has_hidden_characters


@pytest.mark.parametrize(
    "text",
    [
        "18 Alder Court\u202e7X2 SL",
        "\u2066LS2 7HX\u2069",
        "LS2\u200b7HX",
        "LS2 7HX\u00ad",
        "\ufeffLS2",
        "LS2\u2028Approved",
        "LS2\u3164",
        "LS2\x1b[2K",
        "LS2\U000e0041",
        "LS2\ue000",
    ],
)
def test_text_that_hides_something_is_found_anywhere(text: str) -> None:
    assert has_hidden_characters({"a": [{"b": text}]}) and has_hidden_characters({text: 1})


@pytest.mark.parametrize(
    "text",
    [
        "18 Alder Court, Leeds\nLS2 7HX",
        "Zoë\tÅngström",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "नई दिल्ली",
        "東京都",
        "👩\u200d🚒 ok",
        "£250 \u2013 'yes'",
    ],
)
def test_text_as_people_write_it_hides_nothing(text: str) -> None:
    assert not has_hidden_characters({"a": text})


@given(st.recursive(st.integers() | st.booleans() | st.none() | st.floats(), lambda inner: st.lists(inner)))
def test_value_without_text_hides_nothing(value: object) -> None:
    assert not has_hidden_characters(value)


def test_hidden_character_is_written_out() -> None:
    assert escape_hidden("LS2\u200b7HX\n") == "LS2⟨U+200B⟩7HX\n"
