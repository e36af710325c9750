"""What does the visitor read when a gate blocks?"""

from __future__ import annotations

from apps.gates.enums import GateAction, GateCode, GateLane
from apps.gates.schemas import EscalationSpec, GateResult
from apps.sessions.escalations import HANDING_ON, POLITE, stop_for


def _blocked(on_block: str) -> GateResult:
    return GateResult("cap", GateLane.POLICY, GateAction.BLOCK, GateCode.NOT_ALLOWED, on_block=on_block)


def test_respond_says_its_message() -> None:
    assert stop_for(_blocked("x"), {"x": EscalationSpec(action="respond", message="No.")}).text == "No."


def test_unknown_escalation_is_a_report_with_a_polite_word() -> None:
    assert stop_for(_blocked("nobody_wrote_this"), {}).text == POLITE


def test_transfer_to_queue_asks_for_a_person() -> None:
    stop = stop_for(_blocked("x"), {"x": EscalationSpec(action="transfer_to_queue", queue="support_l2")})
    assert (stop.wants_person, stop.text) == (True, HANDING_ON)


def test_suppress_and_escalate_speaks_itself_and_hands_on_by_its_fallback() -> None:
    escalations = {
        "x": EscalationSpec(action="suppress_and_escalate", message="One moment.", fallback="human"),
        "human": EscalationSpec(action="escalate_human", message="A colleague takes over."),
    }
    stop = stop_for(_blocked("x"), escalations)
    assert (stop.text, stop.wants_person) == ("One moment.", True)


def test_fallbacks_in_a_circle_end() -> None:
    circle = {"x": EscalationSpec(action="retry", fallback="y"), "y": EscalationSpec(action="retry", fallback="x")}
    assert stop_for(_blocked("x"), circle).text == POLITE


def test_goal_overrides_a_built_in_escalation() -> None:
    mine = {"polite_redirect": EscalationSpec(action="respond", message="Let's talk about insurance.")}
    assert stop_for(_blocked("polite_redirect"), mine).text == "Let's talk about insurance."
