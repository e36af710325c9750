"""Words that the documents lack are looked for by words that mean nearly the same."""

from __future__ import annotations

import pytest

from llm.briefing import Passage
from llm.offline import answers
from llm.offline.related import related

_WEAR = "### 5.2 Wear\n\nTyres, brakes and other parts that wear out are not covered."
_LARGE = "### 1.2 Large things\n\nFurniture is brought into the room you choose for £29."
_LATE = "### 2.3 Delays\n\nTell us about delays."


def _made(quote: str, title: str, score: float = 0.2) -> Passage:
    return Passage("x", "x", title, "x", 0, len(quote.encode()), quote, score)


def _find(question: str) -> answers.Finding:
    return answers.find(question, [_made(_LATE, "Delivery"), _made(_WEAR, "Motor"), _made(_LARGE, "Delivery")])


@pytest.mark.parametrize(
    ("word", "stem"), [("tires", "tyr"), ("renew", "renewal"), ("birthday", "birth"), ("sofa", "furnitur")]
)
def test_words_of_nearly_the_same_meaning_are_related(word: str, stem: str) -> None:
    likeness = related(word, frozenset(["tyres", "renewal", "birth", "furniture", "parcel"]))
    assert list(likeness) == [stem]
    assert 0.5 <= likeness[stem] <= 1


@pytest.mark.parametrize("word", ["parking", "144", "x7", "minister"])
def test_other_words_and_numbers_are_related_to_none(word: str) -> None:
    assert related(word, frozenset(["parcel", "four", "birth", "7"])) == {}


def test_no_word_is_related_to_one_of_no_words() -> None:
    assert related("sofa", frozenset()) == {}


@pytest.mark.parametrize(("question", "answer"), [("are new tires covered", "Tyres"), ("sofa", "Furniture")])
def test_a_related_word_finds_the_passage_but_is_not_sure(question: str, answer: str) -> None:
    found = _find(question)
    assert found.citations[0].quote.startswith(answer)
    assert found.is_worth_showing
    assert not found.is_sure


def test_of_two_sentences_with_the_same_words_the_one_alike_in_meaning_is_quoted() -> None:
    text = "Damage is told to your bank by us.\n\nDamage in the kitchen or bathroom is paid."
    found = answers.find("damage from a toilet leak", [_made(text, "Cover")])
    assert found.citations[0].quote.startswith("Damage in the kitchen")


def test_one_word_that_two_sections_answer_alike_is_not_sure() -> None:
    one, other = "### 1.1 Claims\n\nA claim is read.", "### 2.1 Claims\n\nA claim is kept."
    found = answers.find("What do you need for a claim?", [_made(one, "Guide"), _made(other, "Terms")])
    assert len(found.citations) == 2
    assert not found.is_sure
