"""Texts of the product that are stored in English are shown in the reader's language; anything else as it is."""

from __future__ import annotations

import pytest

from kernel.language import in_language
from kernel.stored_texts import show_stored


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("Nothing changes", "Es ändert sich nichts"),
        ("Connect Mail of Ann", "Mail of Ann verbinden"),
        ("Seen 12 times.", "12-mal gesehen."),
        ("Seen many times.", "Seen many times."),
        (
            "Only 2 of 3: Send this answer to the visitor",
            "Nur 2 von 3: Diese Antwort an die Besucherin oder den Besucher senden",
        ),
        ("The assistant prepared this. It failed at 5.", "Dies hat der Assistent vorbereitet. It failed at 5."),
        ("12.5 is outside 0 to 10", "12.5 liegt außerhalb von 0 bis 10"),
        ("A sentence of a skill", "A sentence of a skill"),
        ("", ""),
    ],
)
def test_stored_text_is_shown_in_german(stored: str, shown: str) -> None:
    with in_language("de"):
        assert show_stored(stored) == shown


def test_stored_text_stays_english_for_an_english_reader() -> None:
    with in_language("en-GB"):
        assert show_stored("Seen 12 times.") == "Seen 12 times."
