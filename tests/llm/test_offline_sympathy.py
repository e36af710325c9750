"""`builtin:grounded` meets anger and grief with sympathy, and asks back when one word has two answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llm.briefing import Briefing
from llm.language_detection import detect_language
from llm.offline import phrases, proxy
from llm.offline.languages import briefing_in_english, translate_move
from llm.offline.moves import Say
from llm.schemas import AgentResponse, RouteDecision
from tests.factories.llm import HOME_TERMS, briefing


def answer(asked: Briefing) -> AgentResponse:
    language = detect_language([asked.text])
    move = translate_move(proxy.next_move(briefing_in_english(asked, language), (), ()), language)
    assert isinstance(move, Say)
    assert isinstance(move.output, RouteDecision)
    assert move.output.response is not None
    return move.output.response


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("I am so frustrated", phrases.SORRY_TO_HEAR),
        ("my husband died last week", phrases.SORRY_TO_HEAR),
        ("you people are useless", phrases.SORRY_TO_HEAR),
        ("Ich bin sehr enttäuscht", "Das tut mir sehr leid."),
        ("Ma mère est décédée", "J'en suis vraiment désolé."),
        ("Mi padre ha muerto", "Lo siento mucho."),
        ("Mijn vader is overleden", "Dat spijt me heel erg."),
    ],
)
def test_anger_and_grief_get_sympathy_in_the_visitors_language(text: str, said: str) -> None:
    assert answer(briefing(text, passages=())).message.startswith(said)


@pytest.mark.parametrize("text", ["is my sad old car insured", "Is it terrible if I pay late?"])
def test_what_asks_or_asks_for_something_gets_no_sympathy(text: str) -> None:
    assert phrases.SORRY_TO_HEAR not in answer(briefing(text, passages=())).message


def test_praise_is_thanked() -> None:
    assert answer(briefing("you are great")).message == phrases.THANKS


BURGLARY = replace(HOME_TERMS, title="Home / 3.1 Burglary", quote="Theft after a break-in is covered.", version_id="1")
OPEN_DOOR = replace(
    HOME_TERMS, title="Home / 3.3 Open door", quote="Theft by an open door is excluded.", version_id="2"
)


def test_single_word_with_two_answers_is_asked_back() -> None:
    response = answer(briefing("theft", passages=(BURGLARY, OPEN_DOOR)))
    assert response.message == f"{phrases.SEVERAL} Burglary; Open door. {phrases.WHICH}"
    assert response.suggestions == ["Burglary", "Open door"]
    assert response.citations == []


def test_single_word_with_one_answer_is_answered() -> None:
    response = answer(briefing("theft", passages=(BURGLARY,)))
    assert [citation.quote for citation in response.citations] == [BURGLARY.quote]


def test_quote_for_a_visitor_of_another_language_says_that_it_stays_as_written() -> None:
    asked = briefing("Ich bin, was ist mit theft break-in covered?", passages=(BURGLARY,))
    assert answer(asked).message.startswith("Ich zitiere unsere Unterlagen so, wie sie geschrieben sind.")
