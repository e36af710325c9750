"""Does the built-in model follow the visitor's language, and only the visitor's?"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from llm.agents import run_proxy
from llm.briefing import HistoryMessage
from llm.language_detection import detect_language
from llm.models import GROUNDED
from llm.offline import languages, phrases
from llm.offline.languages import LANGUAGES, to_english, translate, translate_back
from llm.schemas import AgentResponse
from tests.factories.llm import briefing

FOLDER = Path(languages.__file__).parent
OURS = [
    value
    for name, value in vars(phrases).items()
    if name.isupper() and isinstance(value, str) and name not in ("AS_APPROVED", "NO_SUCH_TOOL")
]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Hallo", "de"),
        ("Ist ein Rohrbruch versichert?", "en"),
        ("Ist mein Haus bei einem Rohrbruch versichert?", "de"),
        ("Bonjour", "fr"),
        ("Je voudrais savoir si mon assurance est valable", "fr"),
        ("¿Dónde está mi pedido?", "es"),
        ("Hola", "es"),
        ("Goedemorgen", "nl"),
        ("Waar is mijn bestelling?", "nl"),
        ("Kunt u mij vertellen wanneer het pakket komt?", "nl"),
        ("مرحبا", "ar"),
        ("أين طلبي؟", "ar"),
        ("شارع الملك فهد 12، الرياض", "en"),
        ("Where is my order?", "en"),
        ("Jürgen van der Berg, 5 December 1986", "en"),
        ("12 Rue de la Paix, 75002 Paris", "en"),
        ("Plaza de la Constitución 3, Los Angeles", "en"),
        ("H-90187", "en"),
        ("Van der Helstplein 12, 1072 PH Amsterdam", "en"),
        ("Part of me thinks we need a Dutch oven", "en"),
        ("", "en"),
        ("my son will die if I was in a war", "en"),
    ],
)
def test_language_is_told_by_words_and_not_by_names_or_addresses(text: str, language: str) -> None:
    assert detect_language([text]) == language


def test_message_that_tells_no_language_keeps_the_one_before() -> None:
    assert detect_language(["H-90187", "Wo ist meine Bestellung?"]) == "de"


def test_visitor_who_changes_the_language_is_followed() -> None:
    assert detect_language(["What is my excess?", "Wo ist meine Bestellung?"]) == "en"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_sentence_of_ours_is_there(language: str) -> None:
    there = yaml.safe_load((FOLDER / f"{language}.yaml").read_text())
    assert [sentence for sentence in (*OURS, *phrases._SECOND.values()) if sentence not in there] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_two_sentences_read_the_same(language: str) -> None:
    there = yaml.safe_load((FOLDER / f"{language}.yaml").read_text())
    assert len(set(there.values())) == len(there)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("sentence", OURS)
def test_sentence_is_read_back_as_it_was_thought(language: str, sentence: str) -> None:
    assert translate_back(translate(f"{sentence} {phrases.OFFER}", language)) == f"{sentence} {phrases.OFFER}"


@given(st.text())
def test_text_of_somebody_else_stays_as_it_is(text: str) -> None:
    assert translate(f"x{text}", "en") == f"x{text}"


def test_quote_that_holds_a_short_word_of_ours_is_not_touched() -> None:
    quoted = 'From "Letters": "We wrote: Thank you. Goodbye." [1]'
    assert translate(quoted, "de") == quoted


@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("Guten Tag!", "Hello"),
        ("Vielen Dank!", "Thank you"),
        ("Ja, bitte", "Yes"),
        ("Ich möchte mit einem Menschen sprechen", "Talk to a person"),
        ("Kann ich bitte jemanden sprechen?", "Talk to a person"),
        ("Je veux parler à un conseiller", "Talk to a person"),
        ("Merci beaucoup", "Thank you"),
        ("Quiero hablar con una persona", "Talk to a person"),
        ("Ik wil graag met een medewerker praten", "Talk to a person"),
        ("Goedemiddag!", "Hello"),
        ("Heel erg bedankt", "Thank you"),
        ("Dank u wel", "Thank you"),
        ("Nee, bedankt", "No"),
        ("Ja graag", "Yes"),
        ("Laat maar", "Never mind"),
        ("Tot ziens", "Goodbye"),
        ("Muchas gracias", "Thank you"),
        ("أريد التحدث إلى موظف", "Talk to a person"),
        ("شكرًا جزيلًا", "Thank you"),
        ("no", "no"),
        ("The person spoke to me", "The person spoke to me"),
        ("x" * 5000, "x" * 5000),
    ],
)
def test_small_talk_is_read_as_its_english_counterpart(text: str, english: str) -> None:
    assert to_english(text) == english


async def answer(text: str, *history: tuple[str, str]) -> AgentResponse:
    known = briefing(text, passages=(), history=tuple(HistoryMessage(sender, words) for sender, words in history))
    run = await run_proxy(GROUNDED, known)
    assert run.output.response is not None
    return run.output.response


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("Wo liegt bei Ihnen der Mond und was kann ich dort kaufen?", "Das weiß ich leider nicht"),
        ("Comment puis-je acheter la lune ?", "Désolé, je ne le sais pas"),
        ("¿Dónde puedo comprar la luna?", "Lo siento, no lo sé"),
        ("Waar kan ik de maan kopen?", "Dat weet ik helaas niet"),
        ("أين يمكنني شراء القمر؟", "آسف، لا أعرف ذلك"),
    ],
)
async def test_what_is_not_known_is_said_in_the_visitors_language(text: str, begins: str) -> None:
    assert (await answer(text)).message.startswith(begins)


@pytest.mark.parametrize(
    "text",
    [
        "Ich will mit einem Menschen sprechen",
        "Parler à une personne",
        "Hablar con alguien",
        "Iemand spreken",
        "أريد أن أتحدث إلى شخص",
    ],
)
async def test_wish_for_a_person_is_heard_in_every_language(text: str) -> None:
    assert (await answer(text)).handoff


async def test_yes_to_an_offer_in_german_asks_for_a_person() -> None:
    offer = translate(f"{phrases.UNKNOWN} {phrases.OFFER}", "de")
    assert (await answer("Ja, bitte", ("visitor", "Was kostet der Mond?"), ("bot", offer))).handoff


async def test_same_question_twice_is_not_answered_with_the_same_words() -> None:
    first = await answer("Was kostet mich der Mond?")
    second = await answer("Und was kostet mich der Mars?", ("visitor", "x"), ("bot", first.message))
    assert second.message != first.message
