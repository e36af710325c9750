"""A session that a limit stopped goes on where it stopped: what was done is not repeated, and its receipt says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apps.autonomy.enums import SessionStatus
from apps.autonomy.models import AutonomousSession, Checkpoint
from apps.autonomy.services import provenance, session_start
from apps.bus.schemas import LeaseLost
from apps.guard.enums import TerminalReason
from kernel.tenancy import tenant_scope
from tests.autonomy.test_brakes import begin_session, run_in_worker
from tests.autonomy.test_limits_of_the_company import LONG_AGO, reach_limit
from tests.factories.autonomy import RETURNS, House


def stopped_and_continued(house: House, calls: int) -> tuple[AutonomousSession, AutonomousSession]:
    """A review of three questions that is stopped after so many calls, and the queued session that continues it."""
    for text in ("Within how many days can I return a coat?", "Do you sell parrots?", "Do you wrap gifts in gold?"):
        house.ask(text)
    first = house.through(house.task(playbook="unanswered", prompt="", limits={"calls": calls}))
    second = house.do(
        session_start.continue_session, first, key="on", limits=first.frozen_limits.model_copy(update={"calls": 40})
    )
    return first, second


def stopped_after(house: House, calls: int) -> tuple[AutonomousSession, AutonomousSession]:
    first, second = stopped_and_continued(house, calls)
    house.finish()
    return house.session(first.pk), house.session(second.pk)


def calls_of(house: House, session: AutonomousSession, *intents: str) -> int:
    return sum(call["intent"] in intents for call in house.receipt(session)["tool_calls"])


def test_workflow_stopped_while_it_reads_goes_on_with_what_it_has_not_read(house: House, tmp_path: Path) -> None:
    house.know(tmp_path, returns=RETURNS)
    first, second = stopped_after(house, 3)
    assert first.terminal_reason == TerminalReason.BUDGET_TOOL_CALLS
    assert second.status == SessionStatus.COMPLETED
    read = [calls_of(house, each, "run_playbook", "retrieve_chunks") for each in (first, second)]
    assert read == [3, 1]  # the questions, and a search for each of three
    continues = house.receipt(second)["continues"]
    assert continues["session_id"] == str(first.pk)
    assert continues["reads"] == 3
    assert len(house.proposals()) == 3


def test_workflow_stopped_while_it_writes_goes_on_with_what_it_has_not_written(house: House, tmp_path: Path) -> None:
    house.know(tmp_path, returns=RETURNS)
    first, second = stopped_after(house, 6)
    assert first.terminal_reason == TerminalReason.BUDGET_TOOL_CALLS
    continues = house.receipt(second)["continues"]
    assert continues["phases"] == ["intake", "analysis"]
    assert continues["written"] == 2
    assert calls_of(house, second, "run_playbook", "retrieve_chunks") == 0
    written = [calls_of(house, each, "propose_memory") for each in (first, second)]
    assert len(house.proposals()) == 3
    assert sum(written) <= 4


def test_session_stopped_by_a_limit_of_the_company_goes_on_in_the_next_window(house: House) -> None:
    session, delivery = begin_session(house)
    budget = reach_limit(house)
    ended = run_in_worker(house, session, delivery)
    assert ended.terminal_reason == TerminalReason.GLOBAL_DAILY
    house.finish()
    waits: Any = house.sessions(status=SessionStatus.QUEUED)
    assert [each.params["resumes"] for each in waits] == [str(session.pk)]

    house.change(budget, paused_in=LONG_AGO)
    house.finish()
    with tenant_scope(house.tenant):
        last = AutonomousSession.objects.order_by("-queued_at").first()
    assert last is not None
    assert last.status == SessionStatus.COMPLETED
    assert house.receipt(last)["continues"]["session_id"] == str(session.pk)


def test_purged_session_leaves_no_texts_and_nothing_that_continues_it(house: House, tmp_path: Path) -> None:
    house.know(tmp_path, returns=RETURNS)
    first, second = stopped_and_continued(house, 6)
    assert house.findings()
    house.do(provenance.purge, provenance.Origin("session", str(first.pk)), actor="user:1")
    house.finish()
    with tenant_scope(house.tenant):
        assert [row.state for row in Checkpoint.objects.all() if row.state] == []
    assert house.session(second.pk).status == SessionStatus.CANCELLED
    assert [*house.findings(), *house.proposals()] == []


def test_session_that_is_purged_while_it_runs_writes_nothing_more(house: House) -> None:
    session, delivery = begin_session(house)
    house.do(provenance.purge, provenance.Origin("session", str(session.pk)), actor="user:1")
    with pytest.raises(LeaseLost):
        run_in_worker(house, session, delivery)
    assert house.session(session.pk).status == SessionStatus.HALTED
    with tenant_scope(house.tenant):
        assert [row.state for row in Checkpoint.objects.all() if row.state] == []
    assert [*house.findings(), *house.proposals()] == []
