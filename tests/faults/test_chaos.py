"""kill -9 at every named point between admission and acknowledgement, and what is true of it all afterwards.

A hundred rounds by default, a thousand by `make chaos`; the seed is printed, SILAS_CHAOS_SEED repeats a run's order.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.chaos import AT_WEB, AT_WORKER, IN_TURN, VICTIMS, Chaos, plan
from tests.faults.house import await_that, open_house

ROUNDS = int(os.environ.get("SILAS_CHAOS_ROUNDS", "100"))
SEED = int(os.environ.get("SILAS_CHAOS_SEED", "0")) or int(time.time())


@pytest.fixture(scope="module")
def chaos() -> Iterator[Chaos]:
    print(f"\nSILAS_CHAOS_SEED={SEED} rounds={ROUNDS}")
    var = Path(tempfile.mkdtemp(prefix="silas-chaos-"))
    house = open_house(var, "http://127.0.0.1:9", SILAS_PLAN_CARD_SECONDS="86400")
    try:
        whole = Chaos(house, plan(ROUNDS, SEED))
        whole.run()
        if whole.missed or whole.changes.unfinished() or not whole.is_at_rest():
            print(whole.changes.due(), house.said_by(whole.worker)[-6000:])
        yield whole
    finally:
        house.stop()
        shutil.rmtree(var, ignore_errors=True)


def test_plan_tries_every_victim_at_every_point() -> None:
    assert len(set(plan(100, SEED))) == len(AT_WEB + IN_TURN + AT_WORKER) * len(VICTIMS) == 100


def test_every_fault_was_met(chaos: Chaos) -> None:
    assert chaos.missed == []


def test_every_item_ended_or_waits(chaos: Chaos) -> None:
    assert chaos.changes.unfinished() == []


def test_nothing_is_due_any_more(chaos: Chaos) -> None:
    await_that(chaos.is_at_rest, "nothing is due")


def test_no_effect_happened_twice(chaos: Chaos) -> None:
    assert chaos.changes.effects_that_happened_twice() == []


def test_everything_done_has_had_its_effect(chaos: Chaos) -> None:
    assert chaos.changes.done_without_effect() == []


def test_most_of_it_was_done_all_the_same(chaos: Chaos) -> None:
    """An effect that may have happened is left to a person; everything else gets done."""
    assert len(chaos.changes.done()) >= ROUNDS / 2


def test_what_was_not_done_says_why(chaos: Chaos) -> None:
    assert chaos.changes.ended_without_reason() == []


def test_every_card_was_decided_once(chaos: Chaos) -> None:
    assert chaos.changes.cards_not_decided_once() == []


def test_every_approval_was_spent_once(chaos: Chaos) -> None:
    assert chaos.changes.approvals_not_spent_once() == []


def test_budget_used_was_never_forgotten(chaos: Chaos) -> None:
    assert chaos.forgotten == []


def test_every_attempt_is_in_the_budget(chaos: Chaos) -> None:
    assert (
        chaos.house.rows(
            "SELECT item.id::text, item.attempts_made, item.budget_used->>'attempts', count(attempt.id)"
            " FROM work_workitem item LEFT JOIN work_attempt attempt ON attempt.work_item_id = item.id"
            " WHERE item.type = 'task' GROUP BY item.id"
            " HAVING item.attempts_made <> count(attempt.id)"
            " OR (item.budget_used->>'attempts')::int <> count(attempt.id)"
        )
        == []
    )


def test_everything_said_was_kept(chaos: Chaos) -> None:
    visitor = chaos.talker.visitor
    said = chaos.house.rows("SELECT client_id FROM silas_sessions_chronicleentry WHERE sender = 'visitor'")
    assert visitor.unacknowledged == {}
    assert sorted(row["client_id"] for row in said) == sorted(visitor.acknowledged)


def test_everything_said_was_answered_once(chaos: Chaos) -> None:
    heard = len(chaos.talker.visitor.acknowledged)
    turns = chaos.house.rows("SELECT message_seq FROM silas_sessions_turn WHERE status = 'done'")
    assert (len(chaos.talker.visitor.answers()), len({row["message_seq"] for row in turns}), len(turns)) == (heard,) * 3


def test_audit_chain_verifies(chaos: Chaos) -> None:
    assert chaos.changes.audit_chain()[:3] == "ok "


def test_database_never_saw_a_deadlock(chaos: Chaos) -> None:
    assert "deadlock detected" not in (chaos.house.var / "log" / "postgres.log").read_text()
