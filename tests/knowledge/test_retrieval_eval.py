"""The sets of the retrieval evaluation are complete: every question names a document that exists, in both halves."""

from __future__ import annotations

from pydoc_data.topics import topics

from evals.retrieval.__main__ import DEMO, DEMOS, read_articles, read_questions


def test_every_question_names_a_document_that_exists() -> None:
    known = {"alder": {article["id"] for article in read_articles()}, "python": set(topics)}
    for folder in DEMOS.values():
        paths = (DEMO / folder / "knowledge").glob("*.md")
        known[folder] = {path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ") for path in paths}
    assert [question for question in read_questions() if question.document not in known[question.corpus]] == []


def test_every_article_is_asked_for_and_no_question_stands_twice() -> None:
    questions = [question for question in read_questions() if question.corpus == "alder"]
    assert {question.document for question in questions} == {article["id"] for article in read_articles()}
    assert len({question.text for question in questions}) == len(questions) == 162


def test_both_halves_have_a_third_of_the_questions_at_least() -> None:
    held_back = [question.held_back for question in read_questions()]
    assert min(held_back.count(True), held_back.count(False)) * 3 >= len(held_back)
