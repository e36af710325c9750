"""The transactions around an attempt: begin it, conclude it (spec 5.2.1 steps 0 to 3). Inside the worker's scope.

Always holds: nothing begins without `check` of the item's approval; an attempt is counted before anything of it runs;
the end of an item, its proof and the end of the delivery commit together. A redelivered item begins a fresh attempt;
what its lost worker had begun is known to the guard and is not begun again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from apps.approvals import services as approvals
from apps.approvals.queries import use_of
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus import services as bus
from apps.bus.schemas import Lease
from apps.gates.schemas import AuditNote
from apps.guard import services as guard
from apps.guard.enums import Origin, Phase, RunStatus, TerminalReason
from apps.guard.schemas import ApprovedCalls, Limits, call_digest
from apps.work import rules
from apps.work.budgets import BudgetUsed
from apps.work.enums import AttemptStatus, WorkItemStatus, WorkReason
from apps.work.locks import lock_item
from apps.work.models import Attempt, VerificationRun, WorkItem
from apps.work.schemas import VerificationReport, WorkItemSpec
from apps.work.services.items import move
from kernel.clock import now

CONSUMER = "work"
_STOPPED_AS = {
    WorkReason.HALTED: WorkItemStatus.BLOCKED,
    WorkReason.GATE: WorkItemStatus.BLOCKED,
    WorkReason.NOT_APPROVED: WorkItemStatus.BLOCKED,
}


@dataclass(frozen=True)
class AttemptOutcome:
    """What an attempt came to. `stop` ends the item without another try; `result` is what its tools said of it."""

    summary: str
    used: BudgetUsed
    report: VerificationReport | None = None
    next_steps: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    claimed_artifacts: tuple[str, ...] = ()
    result: str = ""
    notes: tuple[AuditNote, ...] = ()
    model_name: str = ""
    error: str = ""
    stop: WorkReason = WorkReason.NONE


def begin(lease: Lease) -> Attempt | None:
    """The next attempt of the delivered item; None when the delivery is over (and acked): done before, not approved,
    or nothing left to spend."""
    assert lease.message.task_id is not None
    item = lock_item(lease.message.task_id)
    if WorkItemStatus(item.status) in rules.FINAL or bus.has_processed(CONSUMER, lease.message.message_id):
        bus.ack(lease)
        return None
    _close_interrupted(item)
    refusal = _not_approved(item) or _exhausted(item)
    if refusal is not None:
        _end(item, lease, *refusal)
        return None
    _open_run_once(item)
    return _next_attempt(item)


def _close_interrupted(item: WorkItem) -> None:
    """The worker of an attempt that is still running is gone: its lease was given to us."""
    lost = item.attempts.filter(status=AttemptStatus.RUNNING)
    lost.update(status=AttemptStatus.INTERRUPTED, ended_at=now(), error="worker_lost")


def _not_approved(item: WorkItem) -> tuple[WorkItemStatus, WorkReason, str] | None:
    """Step 0: the enforcement point behind "cannot execute without a verified approval". Whose rows the work gets is on
    the row; the approval binds it as the plan's domain."""
    reason = "no_token"
    if item.spec.domain != rules.domain_of(item.subject):
        reason = "subject_mismatch"
    elif item.approval_token is not None:
        goal = item.parent.spec if item.parent else None
        verdict = approvals.check(item.approval_token, item.spec.approvable(goal))
        if verdict.ok:
            return None
        reason = verdict.reason.value
    record(AuditEvent.WORK_NOT_APPROVED, subject=f"work:{item.pk}", data={"reason": reason})
    return WorkItemStatus.BLOCKED, WorkReason.NOT_APPROVED, reason


def _exhausted(item: WorkItem) -> tuple[WorkItemStatus, WorkReason, str] | None:
    counter = item.used.exhausted(item.spec.budget)
    if not counter:
        return None
    reason = WorkReason.VERIFICATION if counter == "attempts" and item.last_error else WorkReason.BUDGET
    return WorkItemStatus.STUCK, reason, item.last_error or counter


def _open_run_once(item: WorkItem) -> None:
    """One guarded run for all attempts of an item, so that neither its caps nor its spent approval begin anew."""
    if item.run_id is not None:
        return
    assert item.approval_token is not None
    spec, token = item.spec, item.approval_token
    use = use_of(token.nonce, bound_hash=item.plan_hash)
    run = guard.open_run(
        Origin.WORK,
        item.pk,
        deployment_id=item.deployment_id,
        phase=Phase.EXECUTION,
        allow={call.tool for call in spec.calls},
        limits=_limits(spec),
        approval=ApprovedCalls(
            nonce=f"{use.token_nonce}:{use.ordinal}",
            calls=frozenset(call_digest(call.tool, call.args) for call in spec.calls),
            expires_at=token.expires_at,
        ),
    )
    item.run_id = run.pk


def _limits(spec: WorkItemSpec) -> Limits:
    budget = spec.budget
    return Limits(
        cost_usd=str(budget.max_cost_usd), tokens=budget.max_tokens, wall_seconds=budget.max_wall_time_seconds
    )


def _next_attempt(item: WorkItem) -> Attempt:
    """Step 2a. The attempt is counted before it runs, so that one that kills its worker counts too."""
    item.attempts_made += 1
    item.budget_used = item.used.merge(BudgetUsed(attempts=1, executor_runs=1)).model_dump(mode="json")
    item.save(update_fields=["attempts_made", "budget_used", "run_id"])
    if item.status != WorkItemStatus.RUNNING:
        move(item, WorkItemStatus.RUNNING)
    attempt: Attempt = Attempt.objects.create(work_item=item, number=item.attempts_made, started_at=now())
    return attempt


def conclude(lease: Lease, attempt: Attempt, outcome: AttemptOutcome) -> bool:
    """Write the attempt's end down and decide what follows; True when the item is over and the delivery acked."""
    item = lock_item(attempt.work_item_id)
    passed = outcome.report is not None and outcome.report.all_passed and not outcome.stop
    _close_attempt(attempt, outcome, passed=passed)
    item.budget_used = item.used.merge(outcome.used).model_dump(mode="json")
    item.last_error = "" if passed else _explain(outcome)
    item.save(update_fields=["budget_used", "last_error"])
    if passed:
        changes = {"summary": outcome.summary, "next_steps": list(outcome.next_steps), "result": outcome.result}
        _end(item, lease, WorkItemStatus.DONE, WorkReason.NONE, "", **changes)
        return True
    if outcome.stop:
        _end(item, lease, _STOPPED_AS.get(outcome.stop, WorkItemStatus.STUCK), outcome.stop, item.last_error)
        return True
    return False


def _end(item: WorkItem, lease: Lease, status: WorkItemStatus, reason: WorkReason, error: str, **changes: Any) -> None:
    """The item's end, the run's end and the delivery's end, together or not at all."""
    move(item, status, reason=reason, last_error=error, **changes)
    if item.run_id is not None:
        done = status == WorkItemStatus.DONE
        run_status = RunStatus.COMPLETED if done else RunStatus.FAILED
        guard.close_run(
            item.run_id, status=run_status, reason=TerminalReason.COMPLETED if done else TerminalReason.FAILED
        )
    bus.mark_processed(CONSUMER, lease.message.message_id)
    bus.ack(lease)


def _close_attempt(attempt: Attempt, outcome: AttemptOutcome, *, passed: bool) -> None:
    attempt.status = AttemptStatus.PASSED if passed else AttemptStatus.FAILED
    attempt.summary, attempt.error = outcome.summary, outcome.error
    attempt.artifacts, attempt.model_name = list(outcome.artifacts), outcome.model_name
    attempt.used, attempt.ended_at = outcome.used.model_dump(mode="json"), now()
    attempt.save()
    data: dict[str, int | str | bool] = {"attempt": attempt.number, "passed": passed}
    if outcome.report is not None:
        results = [vars(result) for result in outcome.report.results]
        VerificationRun.objects.create(
            attempt=attempt, all_passed=outcome.report.all_passed, results=results, ran_at=now()
        )
        data |= {"checks": len(outcome.report.results), "failed": len(outcome.report.failed)}
    subject = f"work:{attempt.work_item_id}"
    record(AuditEvent.WORK_ATTEMPTED, subject=subject, data=data)
    for event, noted in outcome.notes:
        record(AuditEvent(event), subject=subject, data=noted)
    invented = set(outcome.claimed_artifacts) - set(outcome.artifacts)
    if invented:
        record(AuditEvent.ARTIFACT_REF_MISMATCH, subject=subject, data={"invented": len(invented)})


def _explain(outcome: AttemptOutcome) -> str:
    return "\n".join(filter(None, (outcome.error, outcome.report.explain() if outcome.report else "")))
