"""How often gates may be asked in one turn: the bound, in both lanes and over all triggers (spec 11)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

from apps.audit.enums import AuditEvent
from apps.gates.allowance import MOST_EVALUATIONS, Allowance, ComputeLimit
from apps.gates.schemas import GateReport, GateSpec
from apps.gates.services import check_gates
from llm.judge import Opinion, Question

MESSAGE, RESPONSE = "every_user_message", "every_agent_response"


def rules(many: int, on: str = MESSAGE) -> list[GateSpec]:
    return [GateSpec(name=f"g{one}", on=on, type="regex", config={"pattern": "."}) for one in range(many)]


def advisers(many: int) -> list[GateSpec]:
    return [GateSpec(name=f"q{one}", on=MESSAGE, provider="llm", config={"policy": "Kind?"}) for one in range(many)]


def kind(question: Question) -> Opinion:
    return Opinion(score=0.9)


def said(gates: list[GateSpec], allowance: Allowance, on: str = MESSAGE) -> GateReport:
    return check_gates(gates, on, {"message": "hello", "response": "hello"}, allowance=allowance)


def test_bound_is_what_the_specification_says() -> None:
    assert MOST_EVALUATIONS == 32


def test_as_many_as_allowed_pass() -> None:
    assert said(rules(32), Allowance()).blocked is None


def test_policy_gate_beyond_the_bound_blocks() -> None:
    report = said(rules(33), Allowance())
    assert report.blocked is not None
    assert report.blocked.gate_name == "g32"
    assert report.blocked.code == "too_many"


def test_quality_gate_beyond_the_bound_is_left_out_with_a_note() -> None:
    asked: list[Question] = []

    def ask(question: Question) -> Opinion:
        asked.append(question)
        return kind(question)

    report = said([*rules(31), *advisers(3)], Allowance(ask=ask))
    left_out = [data["gate"] for event, data in report.audit if event == AuditEvent.GATE_LEFT_OUT]
    assert report.blocked is None
    assert len(asked) == 1
    assert len(report.quality) == 1
    assert left_out == ["q1", "q2"]


def test_policy_gates_are_asked_before_advice_uses_the_bound_up() -> None:
    assert said([*advisers(20), *rules(32)], Allowance(ask=kind)).blocked is None


def test_bound_is_one_for_all_triggers_of_a_turn() -> None:
    allowance = Allowance()
    first, second = said(rules(20), allowance), said(rules(20, RESPONSE), allowance, RESPONSE)
    assert first.blocked is None
    assert second.blocked is not None


def test_gates_of_another_trigger_use_nothing_up() -> None:
    allowance = Allowance()
    said(rules(32, RESPONSE), allowance)
    assert said(rules(32), allowance).blocked is None


def test_call_without_an_allowance_is_bounded_by_itself() -> None:
    assert check_gates(rules(33), MESSAGE, {"message": "hello"}).blocked is not None


def test_threads_take_no_more_than_there_is() -> None:
    allowance = Allowance()

    def take(_: int) -> bool:
        return allowance.take()

    with ThreadPoolExecutor(8) as pool:
        taken: list[Any] = list(pool.map(take, range(200)))
    assert sum(taken) == MOST_EVALUATIONS


class Clock:
    """Each look at it is so much later."""

    def __init__(self, step: float) -> None:
        self.step, self.at = step, 0.0

    def __call__(self) -> float:
        self.at += self.step
        return self.at


def test_gates_that_share_a_patience_are_a_no_once_it_is_used_up() -> None:
    compute_limit = ComputeLimit(1.0, clock=Clock(0.3))
    codes = [result.code for _ in range(3) for result in said(rules(2), Allowance(compute_limit=compute_limit)).policy]
    assert codes == ["passed"] * 4 + ["too_late"] * 2


def test_gate_that_has_no_time_left_is_written_down_as_a_block() -> None:
    report = said(rules(1), Allowance(compute_limit=ComputeLimit(0)))
    assert [(event, data["code"]) for event, data in report.audit] == [(AuditEvent.GATE_BLOCKED, "too_late")]


def test_patience_counts_computing_and_not_waiting() -> None:
    compute_limit = ComputeLimit(0.01)
    with compute_limit.measure():
        Event().wait(0.02)
    assert not compute_limit.is_exhausted
