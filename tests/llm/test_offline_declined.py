"""`builtin:grounded` says why a request was declined, in the visitor's language, and only where one was."""

from __future__ import annotations

import pytest

from llm.offline import phrases
from tests.factories.llm import briefing
from tests.llm.test_offline_sympathy import answer

DECLINED = (("Change H-1", "wrong_details"), ("Change H-2", "not_verified"))


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("Why not?", phrases.DECLINED),
        ("why?", phrases.DECLINED),
        ("Why was my request declined?", phrases.DECLINED),
        ("What is the reason it was refused?", phrases.DECLINED),
        ("Warum nicht?", "Das wurde von unserem Team abgelehnt"),
        ("Wieso wurde meine Bestellung nicht geändert?", "Das wurde von unserem Team abgelehnt"),
        ("Pourquoi est-ce que vous avez refusé ?", "Notre équipe a refusé ceci"),
        ("¿Por qué se rechazó mi pedido?", "Nuestro equipo rechazó esto"),
        ("Waarom is mijn verzoek afgewezen?", "Ons team heeft dit afgewezen"),
        ("لماذا رفض طلبي؟", "رفض فريقنا هذا الطلب"),
    ],
)
def test_reason_of_the_latest_declined_request_is_told(text: str, start: str) -> None:
    said = answer(briefing(text, passages=(), declined=DECLINED)).message
    assert said.startswith(start)
    assert "Change H-2" in said
    assert "H-1" not in said


def test_reason_is_in_the_visitors_words() -> None:
    german = answer(briefing("Warum wurde meine Änderung abgelehnt?", passages=(), declined=DECLINED)).message
    assert german.endswith("Bitte bestätigen Sie sie und fragen Sie noch einmal.")


def test_request_that_was_declined_without_a_reason_offers_a_person() -> None:
    said = answer(briefing("Why not?", passages=(), declined=(("Change H-3", ""),))).message
    assert phrases.NO_REASON in said
    assert said.endswith(phrases.OFFER)


@pytest.mark.parametrize("text", ["Why not?", "Warum wurde meine Änderung abgelehnt?"])
def test_nothing_is_said_of_declined_requests_where_there_are_none(text: str) -> None:
    said = answer(briefing(text, passages=())).message
    assert phrases.DECLINED not in said
    assert "abgelehnt" not in said


def test_other_questions_are_answered_as_before() -> None:
    asked = "Why is my excess so high?"
    assert answer(briefing(asked, declined=DECLINED)) == answer(briefing(asked))
