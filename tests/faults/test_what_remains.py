"""The records are consistent after everything that the tests before this one did to the platform."""

from __future__ import annotations

import contextlib
import subprocess
import time

import pytest

from tests.faults.house import House, Web, await_that


@pytest.fixture(scope="module")
def calm(house: House, web: Web, worker: subprocess.Popen[bytes]) -> House:
    """Leases of killed processes have run out, and whoever lives has picked up what they left."""
    house.let_leases_run_out()
    with contextlib.suppress(AssertionError):
        await_that(lambda: not _owed(house), "everything owed was answered", seconds=30)
    assert _owed(house) == []
    time.sleep(1)
    return house


def _owed(house: House) -> list[dict[str, object]]:
    return house.rows(
        "SELECT queue, kind, scope_id, state, attempts, reason, available_at - now() AS due"
        " FROM bus_queuemessage WHERE finished_at IS NULL AND available_at <= now() ORDER BY position"
    )


@pytest.mark.parametrize("tenant", ["meridian-insurance", "harbor-retail"])
def test_audit_log_verifies(calm: House, tenant: str) -> None:
    checked = calm.manage("audit_verify", "--tenant", tenant)
    assert checked.returncode == 0, checked.stdout
    assert checked.stdout[:3] == "ok ", checked.stdout


def test_no_conversation_has_a_gap(calm: House) -> None:
    gaps = calm.rows(
        "SELECT session_id FROM silas_sessions_chronicleentry GROUP BY session_id"
        " HAVING max(seq) <> count(*) OR count(DISTINCT seq) <> count(*)"
    )
    assert gaps == []


def test_no_message_was_buried(calm: House) -> None:
    assert calm.rows("SELECT reason FROM bus_queuemessage WHERE state = 'dead'") == []


def test_no_message_has_two_answers(calm: House) -> None:
    done = "SELECT session_id, message_seq FROM silas_sessions_turn WHERE status = 'done'"
    assert calm.rows(f"{done} GROUP BY 1, 2 HAVING count(*) > 1") == []


def test_no_work_is_left_half_done(calm: House) -> None:
    assert calm.rows("SELECT id FROM work_workitem WHERE status = 'running' AND type = 'task'") == []


def test_database_never_saw_a_deadlock(calm: House) -> None:
    assert "deadlock detected" not in (calm.var / "log" / "postgres.log").read_text()
