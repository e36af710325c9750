"""Answers to single questions are judged by their expectations, and the questions are well formed."""

from __future__ import annotations

import pytest

from evals.answers.__main__ import Answer, Question, Verdict, judge, read_questions
from llm.offline import phrases

NOTHING: frozenset[str] = frozenset()
FEES = frozenset(["Fees 1.1"])


def question(wanted: str, *, language: str = "en") -> Question:
    return Question("harbor", language, wanted, FEES if wanted == "answer" else NOTHING, "?")


@pytest.mark.parametrize(
    ("wanted", "said", "places", "verdict"),
    [
        ("answer", "It is £3.", FEES, Verdict.RIGHT),
        ("answer", "It is £3.", frozenset(["Fees 1.2"]), Verdict.CONFIDENTLY_WRONG),
        ("answer", phrases.UNSURE, frozenset(["Fees 1.2"]), Verdict.OTHER),
        ("answer", phrases.UNKNOWN, NOTHING, Verdict.FALSE_UNKNOWN),
        ("answer", f"{phrases.FIRST_WHO} Your name?", NOTHING, Verdict.OTHER),
        ("unknown", f"{phrases.UNKNOWN} {phrases.OFFER}", NOTHING, Verdict.RIGHT),
        ("unknown", "It is £3.", FEES, Verdict.CONFIDENTLY_WRONG),
        ("talk", phrases.HELLO, NOTHING, Verdict.RIGHT),
        ("talk", f"{phrases.NOT_SURE_HOW} {phrases.OFFER}", NOTHING, Verdict.OTHER),
        ("sorrow", f"{phrases.SORRY_TO_HEAR} {phrases.OFFER}", NOTHING, Verdict.RIGHT),
        ("sorrow", phrases.HELLO, NOTHING, Verdict.OTHER),
        ("identity", f"{phrases.FIRST_WHO} Your name?", NOTHING, Verdict.RIGHT),
        ("ask", f"{phrases.SEVERAL} A; B. {phrases.WHICH}", NOTHING, Verdict.RIGHT),
        ("ask", f"{phrases.UNKNOWN} {phrases.OFFER}", NOTHING, Verdict.OTHER),
    ],
)
def test_answer_is_judged_by_its_expectation(wanted: str, said: str, places: frozenset[str], verdict: Verdict) -> None:
    assert judge(question(wanted), Answer(said, places)) is verdict


def test_small_talk_in_another_language_than_the_visitors_is_wrong() -> None:
    assert judge(question("talk", language="de"), Answer(phrases.HELLO, NOTHING)) is Verdict.OTHER


def test_every_question_is_asked_once_and_answerable_ones_name_a_passage() -> None:
    questions = read_questions()
    assert len({(each.company, each.text) for each in questions}) == len(questions) == 207
    assert all(each.places for each in questions if each.wanted == "answer")
