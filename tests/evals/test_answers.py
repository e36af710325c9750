"""Answers to single questions are judged by their expectations, and the questions are well formed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evals.answers.__main__ import Answer, Question, Verdict, ask, judge, read_questions
from kernel.tenancy import in_thread
from llm.offline import phrases
from tests.factories.identity import make_identity_desk
from tests.factories.knowledge import ingest_texts

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


async def test_question_is_asked_in_a_conversation_of_its_own(tenant: Any, tmp_path: Path) -> None:
    desk = await in_thread(make_identity_desk, tenant, tmp_path)
    await in_thread(ingest_texts, tenant, tmp_path, fees="# Fees\n\n## 1.1 Post\n\nA parcel costs £3 to send.")
    answer = await ask(desk, "What does it cost to send a parcel?")
    assert "£3" in answer.said
    assert answer.places == frozenset(["Fees 1.1"])


def test_every_question_is_asked_once_and_answerable_ones_name_a_passage() -> None:
    questions = read_questions()
    assert len({(each.company, each.text) for each in questions}) == len(questions) == 339
    assert all(each.places for each in questions if each.wanted == "answer")
