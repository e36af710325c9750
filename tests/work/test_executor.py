"""An approved item is carried out once, verified and reported; any failure stops it with a reason."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest
import time_machine

from apps.approvals.keys.services import rotate_key
from apps.approvals.tokens.services import revoke_token
from apps.audit.models import AuditEntry
from apps.bus import services as bus
from apps.bus.deliveries import Delivery
from apps.bus.models import QueueMessage
from apps.gates.allowance import Allowance
from apps.gates.schemas import GateSpec
from apps.gates.services import save_gate
from apps.guard import services as guard
from apps.guard.enums import Intent, RefusalCode
from apps.guard.models import GuardedRun, ToolCall
from apps.guard.offered_tools import OfferedTool
from apps.guard.schemas import Call, Refused, RunRef, call_digest
from apps.work import attempt_jobs, executor, queries, signals
from apps.work.budgets import BudgetUsed
from apps.work.enums import AttemptStatus, WorkItemStatus, WorkReason
from apps.work.models import Attempt, WorkItem
from apps.work.services.attempts import AttemptOutcome
from apps.work.step_gates import StepGates, StepStopped
from apps.work.work_toolset import WorkToolset
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.audit import tampering
from tests.factories.bus import lease_any, let_leases_run_out
from tests.factories.work import CAP, NOTE, Desk, make_desk, note, plan
from tests.rivals import race

FAIL = "import sys; sys.exit(3)"
HANG = "while True: pass"
GARBAGE = "print('not json')"
SAYS_NO = 'print(\'{"refused": "The shop is closed."}\')'
STEALS = NOTE.replace('"key": row["key"]', '"key": "H-2"')


def work(desk: Desk) -> None:
    desk.work()


def run(desk: Desk, user: Any, value: float = 50) -> WorkItem:
    item = desk.approved(user, value)
    work(desk)
    return desk.item(item.pk)


def attempts(desk: Desk, item: WorkItem) -> list[Attempt]:
    with tenant_scope(desk.tenant):
        return list(Attempt.objects.filter(work_item=item).select_related("verification").order_by("number"))


def attempts_of(desk: Desk, item: WorkItem) -> list[str]:
    with tenant_scope(desk.tenant):
        return list(Attempt.objects.filter(work_item=item).order_by("number").values_list("status", flat=True))


def messages(desk: Desk) -> list[str]:
    with tenant_scope(desk.tenant):
        return list(QueueMessage.objects.filter(queue="executor").values_list("state", flat=True))


# --- done


def test_approved_item_is_done(desk: Desk, approver: Any) -> None:
    assert run(desk, approver).status == WorkItemStatus.DONE


def test_approved_item_takes_effect_once(desk: Desk, approver: Any) -> None:
    run(desk, approver)
    assert desk.order().data["note"] == 50
    assert desk.order().revision == 2


def test_done_item_keeps_its_proof(desk: Desk, approver: Any) -> None:
    (attempt,) = attempts(desk, run(desk, approver))
    proof = [(result["name"], result["passed"], result["output"]) for result in attempt.verification.results]
    assert attempt.status == AttemptStatus.PASSED
    assert proof == [("done", True, "done\n")]


def test_done_item_ends_its_delivery_and_its_run(desk: Desk, approver: Any) -> None:
    item = run(desk, approver)
    with tenant_scope(desk.tenant):
        assert messages(desk) == ["acked"]
        assert GuardedRun.objects.get(pk=item.run_id).status == "completed"


def test_done_item_is_told_step_by_step(desk: Desk, approver: Any) -> None:
    told: list[str] = []
    item = desk.waiting()

    def hear(_: WorkItem, status: str, progress: signals.Progress) -> None:
        told.append(str(progress.text))

    signals.work_changed.connect(hear)
    try:
        desk.decide(item, approver)
        work(desk)
    finally:
        signals.work_changed.disconnect(hear)
    assert told == ["Approved by our team: Change H-1.", "In progress: Change H-1.", "Done: Change H-1. noted"]


def test_standing_item_is_done_without_a_person(desk: Desk, owner: Any) -> None:
    desk.allow_standing(owner)
    proposal = desk.propose(note(5))
    work(desk)
    assert proposal.work_item_id
    assert desk.item(proposal.work_item_id).status == WorkItemStatus.DONE
    assert desk.order().data["note"] == 5


def test_item_of_two_calls_makes_both(desk: Desk, approver: Any) -> None:
    both = desk.propose(note(30), note(40, "H-3"))
    assert both.work_item_id
    desk.decide(desk.item(both.work_item_id), approver)
    work(desk)
    with tenant_scope(desk.tenant):
        states = list(ToolCall.objects.filter(tool="act").order_by("seq").values_list("state", flat=True))
    assert states == ["executed", "executed"]


def test_item_delivered_twice_runs_once(desk: Desk, approver: Any) -> None:
    item = run(desk, approver)
    with tenant_scope(desk.tenant):
        QueueMessage.objects.filter(task_id=item.pk).update(state="queued", finished_at=None)
    work(desk)
    assert desk.order().revision == 2
    assert len(attempts(desk, item)) == 1
    assert messages(desk) == ["acked"]


def test_item_that_nobody_approved_is_blocked(desk: Desk, approver: Any) -> None:
    item = desk.approved(approver)
    with tenant_scope(desk.tenant):
        WorkItem.objects.filter(pk=item.pk).update(approval_token=None)
    work(desk)
    ended = desk.item(item.pk)
    assert ended.status == WorkItemStatus.BLOCKED
    assert ended.reason == WorkReason.NOT_APPROVED
    assert desk.order().revision == 1


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [("H-1", "H-2", "plan_hash_mismatch"), ('"note":50', '"note":99', "plan_hash_mismatch")],
)
def test_item_changed_after_its_approval_is_blocked(desk: Desk, approver: Any, old: str, new: str, why: str) -> None:
    item = desk.approved(approver)
    plan = item.plan.replace(old, new).replace(old.replace('"', '\\"'), new.replace('"', '\\"'))
    with tenant_scope(desk.tenant):
        WorkItem.objects.filter(pk=item.pk).update(plan=plan)
    work(desk)
    assert desk.item(item.pk).last_error == why
    assert desk.order().revision == 1
    assert desk.order("H-2").revision == 1


def test_item_moved_to_another_customer_after_its_approval_is_blocked(desk: Desk, approver: Any) -> None:
    item = desk.approved(approver)
    with tenant_scope(desk.tenant):
        WorkItem.objects.filter(pk=item.pk).update(subject="C-2")
    work(desk)
    ended = desk.item(item.pk)
    assert ended.reason == WorkReason.NOT_APPROVED
    assert ended.last_error == "subject_mismatch"


def test_model_s_own_failing_check_does_not_hide_what_was_done(desk: Desk, approver: Any) -> None:
    """Otherwise the visitor would read that it failed, and a colleague would do it a second time."""
    front = "verify: [{name: never, run: python3 -V, expect: {exit_code: 1}}]\n"
    proposal = desk.propose(plan_markdown=plan(note(), front=front))
    assert proposal.work_item_id
    desk.decide(desk.item(proposal.work_item_id), approver)
    work(desk)
    assert desk.item(proposal.work_item_id).status == WorkItemStatus.DONE
    assert desk.order().data["note"] == 50


def test_item_whose_approval_ran_out_is_blocked(desk: Desk, approver: Any) -> None:
    item = desk.approved(approver)
    assert item.approval_token
    with time_machine.travel(item.approval_token.expires_at, tick=True):
        work(desk)
    assert desk.item(item.pk).last_error == "token_expired"
    assert desk.order().revision == 1


def test_approved_item_of_one_child_cannot_run_its_sibling(desk: Desk, owner: Any) -> None:
    desk.allow_standing(owner, uses=1)
    first, second = desk.propose(note(5)).work_item_id, desk.waiting(7)
    assert first
    with tenant_scope(desk.tenant):
        token = desk.item(first).approval_token
        WorkItem.objects.filter(pk=second.pk).update(approval_token=token)
        message = QueueMessage.objects.get(task_id=first)
        QueueMessage.objects.filter(pk=message.pk).update(task_id=second.pk)
    work(desk)
    ended = desk.item(second.pk)
    assert ended.status == WorkItemStatus.BLOCKED
    assert ended.reason == WorkReason.NOT_APPROVED
    assert desk.order().revision == 1


# --- not done


def test_delivery_that_fails_by_our_own_fault_is_given_back(
    tenant: Any, tmp_path: Path, approver: Any, superuser_dsn: str
) -> None:
    desk = make_desk(tenant, tmp_path, script=f"# {tmp_path}\n{NOTE}")
    item = desk.approved(approver)
    with psycopg.connect(superuser_dsn) as raw:
        raw.execute("SET session_replication_role = replica")
        raw.execute("UPDATE skills_skillfile SET content = 'x' WHERE tenant_id = %s", [tenant.pk])
    work(desk)
    with tenant_scope(tenant):
        message = QueueMessage.objects.get(task_id=item.pk)
    assert message.state == "queued"
    assert message.attempts == 1
    assert message.reason == "skill_damaged"
    assert desk.order().revision == 1


def test_worker_that_lost_its_lease_writes_nothing_more(tenant: Any, tmp_path: Path, approver: Any) -> None:
    desk = make_desk(tenant, tmp_path, script="import time\ntime.sleep(3)\n" + NOTE)
    item = desk.approved(approver)

    def steal() -> None:
        for _ in range(200):
            with tenant_scope(tenant):
                if ToolCall.objects.filter(tool="act", state="admitted").exists():
                    QueueMessage.objects.filter(task_id=item.pk).update(fence=99)
                    return
            time.sleep(0.05)

    race(lambda: desk.work(lease_seconds=0.3), steal)
    assert desk.item(item.pk).status == WorkItemStatus.RUNNING
    assert attempts_of(desk, item) == [AttemptStatus.RUNNING]


@pytest.mark.parametrize("script", [FAIL, GARBAGE, SAYS_NO, STEALS], ids=["exit", "garbage", "refuses", "steals"])
def test_tool_that_fails_leaves_the_item_stuck_within_its_attempts(
    tenant: Any, tmp_path: Path, approver: Any, script: str
) -> None:
    desk = make_desk(tenant, tmp_path, script=script)
    item = run(desk, approver)
    assert item.status == WorkItemStatus.STUCK
    assert item.attempts_made == 5
    assert desk.order().revision == 1


def test_tool_that_hangs_is_stopped_and_the_worker_lives(tenant: Any, tmp_path: Path, approver: Any) -> None:
    desk = make_desk(tenant, tmp_path, script=HANG, timeout=1)
    assert run(desk, approver).status == WorkItemStatus.STUCK


def test_tool_that_only_claims_success_is_not_done(tenant: Any, tmp_path: Path, approver: Any) -> None:
    desk = make_desk(tenant, tmp_path, script='print(\'{"say": "done, honestly"}\')')
    item = run(desk, approver)
    assert item.status == WorkItemStatus.STUCK
    assert item.reason == WorkReason.VERIFICATION


def test_check_that_fails_keeps_the_effect_single(tenant: Any, tmp_path: Path, approver: Any) -> None:
    desk = make_desk(tenant, tmp_path, check="print('never')")
    item = run(desk, approver)
    assert item.status == WorkItemStatus.STUCK
    assert desk.order().revision == 2


def test_failed_attempt_says_which_check_failed(tenant: Any, tmp_path: Path, approver: Any) -> None:
    desk = make_desk(tenant, tmp_path, check="print('never')")
    assert "- done: expected {'equals': 'done'}, got exit code 0" in run(desk, approver).last_error


def test_attempt_whose_worker_died_before_any_call_is_followed_by_a_good_one(desk: Desk, approver: Any) -> None:
    item = desk.approved(approver)
    with tenant_scope(desk.tenant):
        Attempt.objects.create(work_item=item, number=1, started_at=item.created_at)
        WorkItem.objects.filter(pk=item.pk).update(attempts_made=1, status=WorkItemStatus.RUNNING)
    work(desk)
    assert attempts_of(desk, item) == [AttemptStatus.INTERRUPTED, AttemptStatus.PASSED]
    assert desk.order().revision == 2


def test_call_that_was_written_into_the_run_while_it_runs_is_not_made(
    desk: Desk, approver: Any, superuser_dsn: str
) -> None:
    desk.approved(approver)
    with tenant_scope(desk.tenant):
        lease = lease_any("executor", consumer="lost", seconds=60)
        assert lease is not None
        job = attempt_jobs.next_job(Delivery(desk.tenant.pk, lease, "test"))
    assert job is not None
    wanted = {"note": 99, "order": "H-1"}
    with tampering(superuser_dsn) as cursor:
        cursor.execute(
            "UPDATE guard_guardedrun SET approval = jsonb_set(approval, '{calls}', approval->'calls' || %s::jsonb)"
            " WHERE id = %s",
            [json.dumps([call_digest("act", wanted)]), job.run.run_id],
        )
    asked = Call(tool="act", args=wanted, access=job.access, acting=True)
    outcome = asyncio.run(guard.guarded_call(job.run, Intent.RUN_SKILL, asked, context=job.context))
    assert isinstance(outcome, Refused)
    assert outcome.code == RefusalCode.APPROVAL_MISSING
    assert desk.order().revision == 1


def test_item_that_a_person_halts_is_blocked(desk: Desk, approver: Any) -> None:
    item = desk.approved(approver)
    with tenant_scope(desk.tenant):
        lease = lease_any("executor", consumer="lost", seconds=60)
        assert lease is not None
        job = attempt_jobs.next_job(Delivery(desk.tenant.pk, lease, "test"))
        assert job is not None
        guard.halt(job.run.run_id)
    let_leases_run_out(desk.tenant)
    work(desk)
    assert desk.item(item.pk).reason == WorkReason.HALTED
    assert desk.order().revision == 1


def test_gate_that_closed_after_the_approval_blocks_the_item(desk: Desk, approver: Any) -> None:
    item = desk.approved(approver)
    with tenant_scope(desk.tenant):
        save_gate(CAP.model_copy(update={"block": None, "require_approval": None}), deployment_id=desk.deployment.pk)
    work(desk)
    assert desk.item(item.pk).reason == WorkReason.GATE
    assert desk.order().revision == 1


def test_gate_after_the_step_stops_the_item(desk: Desk, approver: Any) -> None:
    step = GateSpec(name="told", on="after_step", after_step=1, extract="say", allowed_values=["something else"])
    item = desk.approved(approver)
    with tenant_scope(desk.tenant):
        save_gate(step, deployment_id=desk.deployment.pk)
    work(desk)
    with tenant_scope(desk.tenant):
        noted = AuditEntry.objects.filter(event="gate_blocked", subject=f"work:{item.pk}").count()
    assert desk.item(item.pk).reason == WorkReason.GATE
    assert desk.item(item.pk).last_error == "gate told"
    assert noted == 1


@pytest.mark.parametrize(
    ("first", "revision"), [({"allowed_values": ["something else"]}, 2), ({"allowed_values": ["noted"]}, 3)]
)
def test_gate_after_a_step_stops_before_the_next_one(
    desk: Desk, approver: Any, first: dict[str, Any], revision: int
) -> None:
    """Of two planned calls, the result of the first decides whether the second is made."""
    proposal = desk.propose(note(50), note(60))
    assert proposal.work_item_id is not None
    desk.decide(desk.item(proposal.work_item_id), approver)
    with tenant_scope(desk.tenant):
        step = GateSpec(name="told", on="after_step", after_step=1, extract="say", **first)
        save_gate(step, deployment_id=desk.deployment.pk)
    work(desk)
    assert desk.order().revision == revision


def test_step_that_was_done_before_a_loss_still_passes_its_gate(desk: Desk, approver: Any) -> None:
    step = GateSpec(name="told", on="after_step", after_step=1, extract="say", allowed_values=["something else"])
    item = desk.approved(approver)
    with tenant_scope(desk.tenant):
        save_gate(step, deployment_id=desk.deployment.pk)
    toolset = WorkToolset(RunRef(desk.tenant.pk, item.pk), (OfferedTool("act", "", {}),), frozenset({"act"}), (step,))
    toolset.steps = StepGates((step,))
    toolset.ledger.earlier_results = {call_digest("act", {}): {"say": "noted"}}
    with pytest.raises(StepStopped):
        asyncio.run(toolset.call_tool("act", {}, None, None))  # type: ignore[arg-type]  # unused


@pytest.mark.parametrize(
    ("gate", "told"),
    [
        ({"type": "regex", "config": {"pattern": r"\A(?!.*noted)"}}, "Done: Change H-1."),
        ({"type": "regex", "config": {"redact": "noted"}}, "Done: Change H-1. [removed]"),
        ({"type": "regex", "config": {"redact": "nothing like it"}}, "Done: Change H-1. noted"),
    ],
)
def test_words_of_a_tool_pass_the_response_gates(desk: Desk, approver: Any, gate: dict[str, Any], told: str) -> None:
    with tenant_scope(desk.tenant):
        save_gate(GateSpec(name="out", on="every_agent_response", **gate), deployment_id=desk.deployment.pk)
    heard: list[str] = []

    def hear(item: WorkItem, status: str, progress: signals.Progress) -> None:
        heard.append(str(progress.text))

    signals.work_changed.connect(hear)
    try:
        run(desk, approver)
    finally:
        signals.work_changed.disconnect(hear)
    assert heard[-1] == told


def test_next_steps_that_no_answer_could_hold_are_not_told(desk: Desk, approver: Any) -> None:
    gate = GateSpec(name="out", on="every_agent_response", type="regex", config={"pattern": r"\A(?!.*4111)"})
    item = desk.approved(approver)
    with tenant_scope(desk.tenant):
        save_gate(gate, deployment_id=desk.deployment.pk)
        lease = lease_any("executor", consumer="test", seconds=60)
        assert lease is not None
        job = attempt_jobs.next_job(Delivery(desk.tenant.pk, lease, "test"))
    assert job is not None
    assert item.pk == job.attempt.work_item_id
    outcome = AttemptOutcome("", BudgetUsed(), next_steps=("Pay with 4111 1111 1111 1111",))
    assert executor._filter_messages(job, outcome, Allowance).next_steps == ()


def test_budget_that_is_used_up_is_not_touched_again(desk: Desk, approver: Any) -> None:
    item = desk.approved(approver)
    with tenant_scope(desk.tenant):
        used = {**item.used.model_dump(mode="json"), "tokens": 200_000}
        WorkItem.objects.filter(pk=item.pk).update(budget_used=used, status=WorkItemStatus.RUNNING)
    work(desk)
    ended = desk.item(item.pk)
    assert ended.status == WorkItemStatus.STUCK
    assert ended.reason == WorkReason.BUDGET
    assert ended.attempts_made == 0


def test_item_of_other_tenant_is_not_found(desk: Desk, other_tenant: Any) -> None:
    item = desk.waiting()
    with pytest.raises(SilasError), tenant_scope(other_tenant):
        queries.work_item(item.pk)


def test_message_that_is_dead_ends_the_item(desk: Desk, approver: Any) -> None:
    item = desk.approved(approver)
    with tenant_scope(desk.tenant):
        lease = lease_any("executor", consumer="test")
        assert lease
        bus.dead_letter(lease, "broken")
    assert desk.item(item.pk).reason == WorkReason.LOST


def test_model_run_is_charged_to_the_item(desk: Desk, approver: Any) -> None:
    item = run(desk, approver)
    assert item.used.attempts == 1
    assert item.used.executor_runs == 1
    assert item.used.cost_usd == 0


def test_item_whose_approval_was_taken_back_before_it_ran_is_blocked(desk: Desk, approver: Any) -> None:
    item = desk.approved(approver)
    with tenant_scope(desk.tenant):
        revoke_token(item.approval_token, user=approver, reason="The customer called again.")
    work(desk)
    ended = desk.item(item.pk)
    assert ended.status == WorkItemStatus.BLOCKED
    assert ended.reason == WorkReason.NOT_APPROVED
    assert ended.last_error == "token_revoked"


def test_item_whose_approver_s_key_is_void_is_blocked(desk: Desk, approver: Any) -> None:
    item = desk.approved(approver)
    with tenant_scope(desk.tenant):
        rotate_key(approver, actor="user:test", compromised=True)
    work(desk)
    assert desk.item(item.pk).last_error == "key_revoked"


def test_item_of_a_replaced_key_is_done(desk: Desk, approver: Any) -> None:
    item = desk.approved(approver)
    with tenant_scope(desk.tenant):
        rotate_key(approver, actor="user:test")
    work(desk)
    assert desk.item(item.pk).status == WorkItemStatus.DONE
