"""Gates that ask a model: what they may say in each lane, and what happens when they say nothing sensible."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from apps.audit.enums import AuditEvent
from apps.gates.allowance import Allowance
from apps.gates.schemas import GateReport, GateSpec
from apps.gates.services import check_gates
from llm.failures import ProviderFailed, ShapeBroken
from llm.judge import Opinion, Question, Ruling

MESSAGE = "every_user_message"
Ask = Callable[[Question], Any]


def gate(**fields: Any) -> GateSpec:
    return GateSpec(**{"name": "kind", "on": MESSAGE, "provider": "llm", "config": {"policy": "Be kind."}, **fields})


def asked(ask: Ask | None, *, message: Any = "hello", **fields: Any) -> GateReport:
    return check_gates([gate(**fields)], MESSAGE, {"message": message}, allowance=Allowance(ask=ask))


def says(answer: Any) -> Ask:
    return lambda question: answer


def raises(error: Exception) -> Ask:
    def ask(question: Question) -> Any:
        raise error

    return ask


BROKEN = {
    "late": raises(TimeoutError()),
    "provider_late": raises(ProviderFailed("request_timeout")),
    "prose": raises(ShapeBroken("no tool call")),
    "not_asked": raises(RuntimeError("stopped")),
    "nothing": says(None),
    "no_model": None,
}


@pytest.mark.parametrize("ask", BROKEN.values(), ids=BROKEN.keys())
def test_quality_gate_without_an_answer_lets_pass_with_a_flag(ask: Ask | None) -> None:
    report = asked(ask)
    (result,) = report.quality
    assert report.blocked is None
    assert result.action == "continue"
    assert result.score is None
    assert result.flags == ("llm_error",)


@pytest.mark.parametrize("ask", BROKEN.values(), ids=BROKEN.keys())
def test_quality_gate_without_an_answer_is_on_record(ask: Ask | None) -> None:
    assert asked(ask).audit == (
        (AuditEvent.QUALITY_GATE, {"gate": "kind", "code": "llm_error", "score": None, "flags": 1}),
    )


@pytest.mark.parametrize("ask", BROKEN.values(), ids=BROKEN.keys())
def test_promoted_gate_without_an_answer_blocks(ask: Ask | None) -> None:
    report = asked(ask, promote_to_policy=True)
    assert report.blocked is not None
    assert report.blocked.code == "llm_error"


def test_quality_score_and_flags_are_kept() -> None:
    (result,) = asked(says(Opinion(score=0.4, flags=["curt"], reason="Words"))).quality
    assert result.lane == "quality"
    assert result.score == 0.4
    assert result.flags == ("curt",)
    assert result.reason == ""


def test_quality_score_is_on_record_and_no_word_of_the_models() -> None:
    report = asked(says(Opinion(score=0.4, flags=["call me on 0123"], reason="My secret")))
    assert report.audit == ((AuditEvent.QUALITY_GATE, {"gate": "kind", "code": "passed", "score": 0.4, "flags": 1}),)


@pytest.mark.parametrize("action", ["block", "require_approval"])
def test_quality_gate_that_decides_is_coerced_and_noted(action: Any) -> None:
    report = asked(says(Opinion(score=0.1, action=action)))
    assert report.blocked is None
    assert report.needs_approval is None
    assert report.quality[0].action == "continue"
    assert AuditEvent.QUALITY_LANE_VIOLATION in [event for event, _ in report.audit]


@pytest.mark.parametrize("answer", [Ruling(action="block"), Ruling(action="continue")])
def test_answer_to_another_question_is_none(answer: Ruling) -> None:
    assert asked(says(answer)).quality[0].flags == ("llm_error",)


def test_advice_does_not_pass_for_a_decision() -> None:
    report = asked(says(Opinion(score=1.0)), promote_to_policy=True)
    assert report.blocked is not None
    assert report.blocked.code == "llm_error"


@pytest.mark.parametrize(("action", "code"), [("continue", "passed"), ("block", "llm_said")])
def test_promoted_gate_decides(action: Any, code: str) -> None:
    (result,) = asked(says(Ruling(action=action)), promote_to_policy=True).policy
    assert result.lane == "policy"
    assert result.action == action
    assert result.code == code


def test_promoted_gate_may_want_a_person() -> None:
    report = asked(says(Ruling(action="require_approval")), promote_to_policy=True)
    assert report.needs_approval is not None


def test_models_own_words_are_nobodys_reason() -> None:
    report = asked(says(Ruling(action="block", reason="Visitor said: IBAN DE00")), promote_to_policy=True)
    assert report.blocked is not None
    assert "IBAN" not in f"{report.blocked} {report.audit}"


@pytest.mark.parametrize("message", [None, 7, "x" * 50_001])
def test_text_that_cannot_be_read_whole_is_not_asked_about(message: Any) -> None:
    report = asked(says(Ruling(action="continue")), message=message, promote_to_policy=True)
    assert report.blocked is not None


def test_question_says_what_the_gate_says() -> None:
    seen: list[Question] = []
    config = {"policy": "Be kind.", "model": "openai:gpt-4o", "seconds": 3, "max_tokens": 100}
    asked(lambda question: seen.append(question), config=config, promote_to_policy=True)
    assert seen == [Question("Be kind.", "hello", binding=True, model="openai:gpt-4o", seconds=3, max_tokens=100)]


def test_failure_is_logged_without_the_text(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        asked(raises(ValueError("my secret message")), message="my secret message")
    assert "gate_model_failed" in caplog.text
    assert "secret" not in caplog.text
