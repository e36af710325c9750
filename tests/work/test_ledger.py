"""What an attempt really did is known after any crash: its calls, files and cost; nothing is done twice."""

from __future__ import annotations

import base64
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from apps.audit.models import AuditEntry
from apps.bus.deliveries import Delivery
from apps.guard.models import GuardedRun
from apps.guard.schemas import call_digest
from apps.work import artifacts, attempt_jobs
from apps.work.budgets import BudgetUsed
from apps.work.enums import AttemptStatus, WorkItemStatus, WorkReason
from apps.work.models import Artifact, Attempt, LedgerEntry, WorkItem
from apps.work.schemas import VerificationReport
from apps.work.services import attempts
from apps.work.services.attempts import AttemptOutcome
from kernel import fault_points
from kernel.fault_points import Action
from kernel.tenancy import tenant_scope
from tests.factories.bus import lease_any, let_waits_pass
from tests.factories.work import NOTE, NOTED, Desk, make_desk, note

LETTER = NOTE + '\nopen("/sandbox/out/letter.txt", "w").write("dear customer")\n'
HAS_LETTER = """
import os
print("done" if os.path.exists("/sandbox/artifacts/letter.txt") else "not done")
"""
SECOND_FAILS = NOTE.replace("row = next", 'assert call["args"]["order"] != "H-3"\nrow = next')


def ledger(desk: Desk, item: WorkItem) -> list[tuple[str, bool, str]]:
    with tenant_scope(desk.tenant):
        rows = LedgerEntry.objects.filter(attempt__work_item=item).order_by("created_at")
        return [(row.args_digest, row.success, row.error) for row in rows]


def digest(*args: Any) -> str:
    call = note(*args)
    return call_digest(call.tool, call.args)


def statuses(desk: Desk, item: WorkItem) -> list[str]:
    with tenant_scope(desk.tenant):
        return list(Attempt.objects.filter(work_item=item).order_by("number").values_list("status", flat=True))


def approved(desk: Desk, user: Any, *calls: Any) -> WorkItem:
    proposal = desk.propose(*calls)
    assert proposal.work_item_id
    desk.decide(desk.item(proposal.work_item_id), user)
    return desk.item(proposal.work_item_id)


@pytest.fixture
def faults(tmp_path: Path, database: None) -> Any:
    """A folder for faults of this process, disarmed afterwards."""
    folder = tmp_path / "faults"
    folder.mkdir()
    fault_points.arm(str(folder))
    yield folder
    fault_points.arm("")


# --- the ledger


def test_done_call_is_in_the_ledger_by_digest(desk: Desk, approver: Any) -> None:
    item = approved(desk, approver, note())
    desk.work()
    assert ledger(desk, item) == [(digest(), True, "")]


def test_done_call_s_result_is_kept(desk: Desk, approver: Any) -> None:
    item = approved(desk, approver, note())
    desk.work()
    with tenant_scope(desk.tenant):
        entry = LedgerEntry.objects.get(attempt__work_item=item)
    assert entry.value == {"say": "noted"}
    assert entry.duration_seconds > 0
    assert entry.call_id is not None


def test_failed_call_is_in_the_ledger_with_its_error(tenant: Any, tmp_path: Path, approver: Any) -> None:
    desk = make_desk(tenant, tmp_path, script="import sys; sys.exit(3)")
    item = approved(desk, approver, note())
    desk.work()
    assert ledger(desk, item) == [(digest(), False, "script_failed")] * 5


def test_call_that_an_earlier_attempt_made_is_not_made_again(tenant: Any, tmp_path: Path, approver: Any) -> None:
    """The first of two calls succeeded and the second failed each time: retries skip the first."""
    desk = make_desk(tenant, tmp_path, script=SECOND_FAILS)
    item = approved(desk, approver, note(30), note(40, "H-3"))
    desk.work()
    made = [(found, ok) for found, ok, _ in ledger(desk, item)]
    assert made == [(digest(30), True)] + [(digest(40, "H-3"), False)] * 5
    assert desk.order().revision == 2


def test_second_call_is_made_after_a_crash_behind_the_first(desk: Desk, approver: Any, faults: Path) -> None:
    item = approved(desk, approver, note(30), note(40, "H-3"))
    fault_points.plant(faults, "guard.after_settle", Action.PASS, Action.RAISE)
    desk.work()
    let_waits_pass(desk.tenant)
    desk.work()
    found = (desk.item(item.pk).status, desk.order().revision, desk.order("H-3").revision)
    assert found == (WorkItemStatus.DONE, 2, 2)
    assert statuses(desk, item) == ["interrupted", "passed"]


# --- files


def test_file_of_a_call_is_kept_and_seen_by_the_checks(tenant: Any, tmp_path: Path, approver: Any) -> None:
    desk = make_desk(tenant, tmp_path, script=LETTER, check=HAS_LETTER)
    item = approved(desk, approver, note())
    desk.work()
    with tenant_scope(tenant):
        files = artifacts.files_of(item)
        name = artifacts.full_name(Artifact.objects.get())
    assert desk.item(item.pk).status == WorkItemStatus.DONE
    assert files == {"letter.txt": b"dear customer"}
    assert name == f"{item.pk}/{item.pk}/1/letter.txt"


def test_file_of_a_lost_attempt_is_there_for_the_next(tenant: Any, tmp_path: Path, approver: Any, faults: Path) -> None:
    desk = make_desk(tenant, tmp_path, script=LETTER, check=HAS_LETTER)
    item = approved(desk, approver, note())
    fault_points.plant(faults, "work.before_verification", Action.RAISE)
    desk.work()
    let_waits_pass(tenant)
    desk.work()
    assert desk.item(item.pk).status == WorkItemStatus.DONE
    assert desk.order().revision == 2


def test_file_never_reaches_the_model_or_the_ledger(tenant: Any, tmp_path: Path, approver: Any) -> None:
    desk = make_desk(tenant, tmp_path, script=LETTER, check=HAS_LETTER)
    item = approved(desk, approver, note())
    desk.work()
    with tenant_scope(tenant):
        entry = LedgerEntry.objects.get(attempt__work_item=item)
    assert base64.b64encode(b"dear customer").decode() not in str(entry.value)


def test_files_that_are_too_large_undo_the_call(
    tenant: Any, tmp_path: Path, approver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "MAX_BYTES_AN_ATTEMPT", 5)
    desk = make_desk(tenant, tmp_path, script=LETTER, check=NOTED)
    item = approved(desk, approver, note())
    desk.work()
    assert ledger(desk, item)[0][2] == "artifacts_too_large"
    assert desk.order().revision == 1


# --- budget


def test_money_of_a_lost_attempt_counts(desk: Desk, approver: Any, faults: Path) -> None:
    item = approved(desk, approver, note())
    fault_points.plant(faults, "work.before_verification", Action.RAISE)
    desk.work()
    with tenant_scope(desk.tenant):
        run_id = WorkItem.objects.get(pk=item.pk).run_id
        GuardedRun.objects.filter(pk=run_id).update(cost_total=Decimal("0.7"), input_tokens=900, output_tokens=100)
    let_waits_pass(desk.tenant)
    desk.work()
    used = desk.item(item.pk).used
    assert used.cost_usd == Decimal("0.7")
    assert used.tokens == 1000
    assert used.attempts == 2
    assert used.executor_runs == 2


def test_lost_attempt_that_used_the_budget_up_is_the_last(desk: Desk, approver: Any, faults: Path) -> None:
    item = approved(desk, approver, note())
    fault_points.plant(faults, "work.begun", Action.RAISE)
    desk.work()
    with tenant_scope(desk.tenant):
        run_id = WorkItem.objects.get(pk=item.pk).run_id
        GuardedRun.objects.filter(pk=run_id).update(cost_total=Decimal(2))
    let_waits_pass(desk.tenant)
    desk.work()
    ended = desk.item(item.pk)
    assert ended.status == WorkItemStatus.STUCK
    assert ended.reason == WorkReason.BUDGET
    assert desk.order().revision == 1


def test_time_of_attempts_adds_up(tenant: Any, tmp_path: Path, approver: Any) -> None:
    desk = make_desk(tenant, tmp_path, script="import sys; sys.exit(3)")
    item = approved(desk, approver, note())
    desk.work()
    with tenant_scope(tenant):
        spent = [attempt.used["wall_time_seconds"] for attempt in Attempt.objects.filter(work_item=item)]
    assert desk.item(item.pk).used.wall_time_seconds == pytest.approx(sum(spent))


# --- what an agent says of itself


def test_file_that_the_agent_invents_is_written_down_and_never_used(desk: Desk, approver: Any) -> None:
    item = approved(desk, approver, note())
    with tenant_scope(desk.tenant):
        lease = lease_any("executor", consumer="test", seconds=60)
        assert lease is not None
        delivery = Delivery(desk.tenant.pk, lease, "test")
        job = attempt_jobs.next_job(delivery)
        assert job is not None
        outcome = AttemptOutcome(
            "All is well", BudgetUsed(), report=VerificationReport(()), claimed_artifacts=("proof.pdf",)
        )
        attempts.conclude_attempt(delivery, job.attempt, outcome)
    with tenant_scope(desk.tenant):
        noted = AuditEntry.objects.filter(event="artifact_ref_mismatch", subject=f"work:{item.pk}").count()
        assert noted == 1
        assert artifacts.files_of(item) == {}
        assert statuses(desk, item) == [AttemptStatus.PASSED]


def nearly_out_of_time(desk: Desk, item: WorkItem, left: float) -> None:
    with tenant_scope(desk.tenant):
        used = {**item.used.model_dump(mode="json"), "wall_time_seconds": 1800 - left}
        WorkItem.objects.filter(pk=item.pk).update(budget_used=used)


def test_call_is_cut_when_the_time_of_its_work_is_up_and_the_next_does_not_begin(
    tenant: Any, tmp_path: Path, approver: Any
) -> None:
    desk = make_desk(tenant, tmp_path, script="import time\ntime.sleep(60)\n" + NOTE)
    item = approved(desk, approver, note(30), note(40, "H-3"))
    nearly_out_of_time(desk, item, 1.0)
    desk.work()
    ended = desk.item(item.pk)
    assert ledger(desk, item) == [(digest(30), False, "timeout")]
    assert desk.order().revision == 1
    assert desk.order("H-3").revision == 1
    assert ended.status == WorkItemStatus.STUCK


def test_call_that_fits_into_what_is_left_is_done(tenant: Any, tmp_path: Path, approver: Any) -> None:
    desk = make_desk(tenant, tmp_path, script=NOTE)
    item = approved(desk, approver, note(30))
    nearly_out_of_time(desk, item, 120.0)
    desk.work()
    assert desk.item(item.pk).status == WorkItemStatus.DONE
    assert desk.order().revision == 2
