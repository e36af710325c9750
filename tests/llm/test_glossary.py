"""Questions in other languages are looked up by their English words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm.briefing import Passage
from llm.glossary import in_english, search_words
from llm.language_detection import detect_language
from llm.offline import answers

_DELIVERY = "### 1.1 Standard delivery\n\nStandard delivery costs £3.95."
_PIPES = "### 4.4 Frozen pipes\n\nFrost damage to pipes is covered if the home was heated."


def _made(quote: str, title: str) -> Passage:
    return Passage("x", "x", title, "x", 0, len(quote.encode()), quote, 0.1)


@pytest.mark.parametrize(
    ("language", "question", "english"),
    [
        ("de", "Was kostet der Versand?", "what price delivery"),
        ("fr", "Est-ce que vous livrez en France ?", "delivery france"),
        ("es", "¿Está cubierta una tubería rota en mi casa?", "covered pipe damaged home"),
        ("nl", "Hoe lang is de garantie op een klok?", "how long guarantee clock"),
        ("ar", "هل توصلون إلى فرنسا؟", "delivery france"),
    ],
)
def test_words_are_put_into_english_in_their_order(language: str, question: str, english: str) -> None:
    assert in_english(question, language) == english


def test_a_word_that_the_glossary_lacks_stays_and_so_counts_as_not_found() -> None:
    assert in_english("Kann ich meinen Papagei versichern?", "de") == "papagei insured"


def test_the_counterpart_that_the_documents_use_is_taken() -> None:
    assert in_english("Hoe lang is de garantie?", "nl", {"how long", "warranty"}.__contains__) == "how long warranty"


def test_a_search_takes_all_counterparts() -> None:
    assert search_words("Was kostet das?", "de").split() == ["what", "price", "cost"]


def test_english_and_languages_without_a_glossary_have_none() -> None:
    assert in_english("What does delivery cost?", "en") == ""
    assert search_words("Quanto costa?", "it") == ""


@given(st.text(max_size=600), st.sampled_from(["de", "fr", "es", "nl", "ar"]))
def test_any_text_is_looked_up(text: str, language: str) -> None:
    assert in_english(text, language) == " ".join(in_english(text, language).split())


def test_a_foreign_question_finds_the_english_passage_but_is_never_sure_of_it() -> None:
    passages = [_made(_DELIVERY, "Delivery / 1. Prices"), _made(_PIPES, "Home policy / 4. Water")]
    found = answers.find("Was kostet der Versand?", passages)
    assert "£3.95" in found.citations[0].quote
    assert found.is_worth_showing
    assert not found.is_sure


def test_a_foreign_question_about_nothing_in_the_documents_finds_nothing() -> None:
    found = answers.find("Kann ich meinen Papagei taufen lassen?", [_made(_PIPES, "Home policy / 4. Water")])
    assert not found.is_worth_showing


@pytest.mark.parametrize(
    ("text", "language"),
    [("¿A qué hora abre la tienda de Whitby?", "es"), ("Was kostet der Versand?", "de"), ("12 de la Cruz Road", "en")],
)
def test_short_questions_tell_their_language_and_addresses_tell_none(text: str, language: str) -> None:
    assert detect_language([text]) == language


@pytest.mark.parametrize("said", ["how long can i send things back", "may I bring it back", "giving it back"])
def test_sending_back_means_a_return(said: str) -> None:
    found = answers.find(said, [_made("### 1.1\n\nYou have 45 days to return something.", "Returns")])
    assert "45 days" in found.citations[0].quote
