"""A session from its first phase to its receipt, whatever happens (contract autonomy C: Run)."""

from __future__ import annotations

from pathlib import Path

from apps.autonomy.enums import SessionStatus
from apps.guard.enums import TerminalReason
from tests.factories.autonomy import OTHER, RETURNS, House

PHASES = ["intake", "analysis", "drafting", "ethics_review", "delivery"]


def test_prompt_is_looked_into_with_the_built_in_model(house: House, tmp_path: Path) -> None:
    house.know(tmp_path, returns=RETURNS)
    session = house.through(house.task(prompt="Within how many days can a coat be returned?"))
    assert session.status == SessionStatus.COMPLETED
    assert session.terminal_reason == TerminalReason.COMPLETED


def test_run_goes_through_five_phases_in_order(house: House) -> None:
    session = house.through(house.task())
    assert [each["to_phase"] for each in house.receipt(session)["phase_transitions"]] == PHASES


def test_stored_receipt_is_the_one_rebuilt_from_rows(house: House) -> None:
    session = house.through(house.task())
    assert session.receipt == house.receipt(session)


def test_unanswered_questions_become_proposals(house: House, tmp_path: Path) -> None:
    house.know(tmp_path, returns=RETURNS)
    house.ask("Within how many days can I return a coat?", times=4)
    house.ask("Do you sell gift wrapping for parrots?", times=2)
    house.through(house.task(playbook="unanswered", limits={"calls": 40}))
    assert {each.kind for each in house.proposals()} == {"knowledge"}
    assert len(house.proposals()) == 2


def test_reviewed_questions_are_not_gone_through_again(house: House) -> None:
    house.ask("Do you sell gift wrapping for parrots?")
    task = house.task(playbook="unanswered")
    house.through(task)
    house.through(task)
    assert len(house.proposals()) == 1


def test_new_document_that_contradicts_another_is_found(house: House, tmp_path: Path) -> None:
    house.know(tmp_path, returns=RETURNS, other=OTHER)
    house.through(house.task(playbook="contradictions", limits={"calls": 60}))
    assert any("14 days" in each.title and "30 days" in each.title for each in house.findings())
