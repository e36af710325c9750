"""The transactions around an attempt: begin it, conclude it (spec 5.2.1 steps 0 to 3). Inside the worker's scope.

Always holds: nothing begins without a check of the item's approval; an attempt is counted before anything of it runs;
the end of an item, its verification and the end of the delivery commit together. A redelivered item begins a fresh
attempt; the guard knows what its lost worker had begun and does not begin it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus.deliveries import Delivery
from apps.gates.schemas import AuditNote
from apps.guard import services as guard
from apps.guard.enums import Origin, Phase
from apps.guard.queries import is_run_for
from apps.guard.schemas import ApprovedCalls, Limits, call_digest
from apps.skills import outside_tools
from apps.work import input_artifacts, pool, rules
from apps.work.budgets import BudgetUsed
from apps.work.enums import AttemptStatus, WorkItemStatus, WorkReason
from apps.work.input_artifacts import LinkageMissing
from apps.work.ledger import LedgerLine
from apps.work.locks import lock_course, lock_item
from apps.work.models import Attempt, Course, VerificationRun, WorkItem
from apps.work.schemas import VerificationReport, WorkItemSpec
from apps.work.services import (
    cancellation,
    completion,
    failure_handling,
    gate_pauses,
    ledger_entries,
    preconditions,
    usage,
)
from apps.work.services.authority import Authority, authority_of
from apps.work.services.items import move
from apps.work.step_gates import PendingReview
from kernel.clock import now
from kernel.errors import SilasError

_STOPPED_AS = {
    WorkReason.HALTED: WorkItemStatus.BLOCKED,
    WorkReason.GATE: WorkItemStatus.BLOCKED,
    WorkReason.NOT_APPROVED: WorkItemStatus.BLOCKED,
}


@dataclass(frozen=True)
class AttemptOutcome:
    """Result of an attempt. `stop` ends the item without a retry, `review` pauses it for a person; `result` is what its
    tools said."""

    summary: str
    used: BudgetUsed
    report: VerificationReport | None = None
    next_steps: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    claimed_artifacts: tuple[str, ...] = ()
    result: str = ""
    lines: tuple[LedgerLine, ...] = ()
    notes: tuple[AuditNote, ...] = ()
    model_name: str = ""
    prompt: str = ""
    error: str = ""
    stop: WorkReason = WorkReason.NONE
    review: PendingReview | None = None


@dataclass(frozen=True)
class StartedAttempt:
    """An attempt, and the calls that its item's approval allows, as verified here for the guard."""

    attempt: Attempt
    approval: ApprovedCalls


def begin_attempt(delivery: Delivery) -> StartedAttempt | None:
    """Return the next attempt of the delivered item, or the one that paused for a person; None when the delivery is
    over: done before, cancelled, not approved, no budget left, or no place in the pool for now."""
    assert delivery.message.task_id is not None
    item = lock_item(delivery.message.task_id)
    course = lock_course(item)
    if WorkItemStatus(item.status) in rules.FINAL or course.waiting_for:
        completion.finish_delivery(delivery)
        return None
    # A running attempt at this point belongs to a dead worker, since this delivery holds the lease.
    _close_interrupted(item)
    authority = authority_of(item)
    if _end_if_invalid(delivery, item, course, authority):
        return None
    paused: Attempt | None = item.attempts.filter(status=AttemptStatus.PAUSED).first()
    if item.used.exhausted(item.spec.budget, ignoring=frozenset({"attempts"} if paused else ())):
        failure_handling.handle_failed_attempt(delivery, item, course)
        return None
    # Last, so that an item that cannot run never occupies a slot.
    if not pool.acquire(delivery.lease):
        delivery.defer(settings.POOL_RETRY_SECONDS, pool.IN_USE)
        return None
    _open_run_once(item, authority)
    attempt = _next_attempt(item) if paused is None else _same_attempt(item, paused)
    return StartedAttempt(attempt, _approved_calls(item.spec, authority))


def _end_if_invalid(delivery: Delivery, item: WorkItem, course: Course, authority: Authority) -> bool:
    """Step 0: end the item if it was cancelled, or its approval, card, records or inputs are not valid now."""
    if course.cancelled_by:
        cancellation.end_cancelled(delivery, item)
    elif (refusal := authority.refusal or _run_error(item, authority)) or (refusal := _card_error(item)):
        record(AuditEvent.WORK_NOT_APPROVED, subject=f"work:{item.pk}", data={"reason": refusal})
        completion.end_delivered(delivery, item, WorkItemStatus.BLOCKED, WorkReason.NOT_APPROVED, error=refusal)
    elif preconditions.is_outdated(item):
        _end_outdated(delivery, item)
    elif missing := _missing_input(item):
        completion.end_delivered(delivery, item, WorkItemStatus.BLOCKED, WorkReason.LINKAGE, error=missing)
    else:
        return False
    return True


def _end_outdated(delivery: Delivery, item: WorkItem) -> None:
    """End an undo whose records have changed: there is nothing left to restore. Anything else is asked about again."""
    if preconditions.is_undo(item):
        reason = preconditions.CHANGED
        record(AuditEvent.WORK_NOT_APPROVED, subject=f"work:{item.pk}", data={"reason": reason})
        completion.end_delivered(delivery, item, WorkItemStatus.BLOCKED, WorkReason.NOT_APPROVED, error=reason)
    else:
        preconditions.return_for_approval(item)
        completion.finish_delivery(delivery)


def _run_error(item: WorkItem, authority: Authority) -> str:
    """Verify that the run on the row was opened for this item with exactly what its approval allows, since the row
    could have been written by SQL."""
    if item.run_id is None:
        return ""
    limits, approval = _limits(item.spec), _approved_calls(item.spec, authority)
    # Otherwise SQL could attach a run with wider limits, or one whose approval names other calls.
    ours = is_run_for(item.run_id, Origin.WORK, item.pk, limits=limits, approval=approval)
    return "" if ours else "run_mismatch"


def _card_error(item: WorkItem) -> str:
    """Return an error code if the approved card no longer shows what was signed with its approval."""
    try:
        preconditions.expected_reads(item)
    except SilasError as refusal:
        return refusal.code
    return ""


def _missing_input(item: WorkItem) -> str:
    """Step 0.5: return what is missing of the files that the item builds on."""
    try:
        input_artifacts.input_files_of(item)
    except LinkageMissing as refusal:
        return refusal.message
    return ""


def _close_interrupted(item: WorkItem) -> None:
    """Close an attempt whose worker died: its lease was given to us. What it had spent is known to the guard, and
    counts."""
    lost = item.attempts.filter(status=AttemptStatus.RUNNING).first()
    if lost is None:
        return
    # Interrupted, and not failed: nothing is known of what it did, and its checks never ran.
    lost.status, lost.ended_at, lost.error = AttemptStatus.INTERRUPTED, now(), "worker_lost"
    lost.save(update_fields=["status", "ended_at", "error"])
    used = usage.with_run_usage(item.used, item.run_id)
    used = used.merge(BudgetUsed(wall_time_seconds=usage.seconds_observed(item.run_id, since=lost.started_at)))
    item.budget_used = used.model_dump(mode="json")
    item.save(update_fields=["budget_used"])


def _open_run_once(item: WorkItem, authority: Authority) -> None:
    """Open one guarded run for all attempts of an item, so that neither its caps nor its spent approval start over."""
    if item.run_id is not None:
        return
    spec = item.spec
    # What was approved, and reading tools that prove outside calls.
    called = {call.tool for call in spec.calls}
    run = guard.open_run(
        Origin.WORK,
        item.pk,
        deployment_id=item.deployment_id,
        phase=Phase.EXECUTION,
        allow=called | outside_tools.proof_tools(spec.skills, called),
        limits=_limits(spec),
        approval=_approved_calls(spec, authority),
    )
    item.run_id = run.pk


def _approved_calls(spec: WorkItemSpec, authority: Authority) -> ApprovedCalls:
    return ApprovedCalls(
        nonce=authority.nonce,
        calls=frozenset(call_digest(call.tool, call.args) for call in spec.calls),
        expires_at=authority.expires_at,
        token=authority.token,
    )


def _limits(spec: WorkItemSpec) -> Limits:
    """Time is not limited here: the attempt measures it (`meter`), because a run's clock would include its pauses."""
    return Limits(cost_usd=str(spec.budget.max_cost_usd), tokens=spec.budget.max_tokens)


def _next_attempt(item: WorkItem) -> Attempt:
    """Step 2a. Count the attempt before it runs, so that one that kills its worker counts too."""
    item.attempts_made += 1
    item.budget_used = item.used.merge(BudgetUsed(attempts=1, executor_runs=1)).model_dump(mode="json")
    item.save(update_fields=["attempts_made", "budget_used", "run_id"])
    if item.status != WorkItemStatus.RUNNING:
        move(item, WorkItemStatus.RUNNING)
    # Committed before anything runs: an attempt that kills its worker would otherwise be repeated for ever.
    attempt: Attempt = Attempt.objects.create(work_item=item, number=item.attempts_made, started_at=now())
    return attempt


def _same_attempt(item: WorkItem, paused: Attempt) -> Attempt:
    """Continue the attempt after a person's approval at a gate. It was counted when it began; its clock restarts, so
    that the wait does not count."""
    item.budget_used = item.used.merge(BudgetUsed(executor_runs=1)).model_dump(mode="json")
    item.save(update_fields=["budget_used", "run_id"])
    move(item, WorkItemStatus.RUNNING)
    paused.status, paused.started_at, paused.ended_at = AttemptStatus.RUNNING, now(), None
    paused.save(update_fields=["status", "started_at", "ended_at"])
    return paused


def conclude_attempt(delivery: Delivery, attempt: Attempt, outcome: AttemptOutcome) -> bool:
    """Store the attempt's end and decide what follows; True when the delivery is over."""
    item = lock_item(attempt.work_item_id)
    course = lock_course(item)
    passed = outcome.report is not None and outcome.report.all_passed and not outcome.stop
    _close_attempt(attempt, outcome, passed=passed)
    item.budget_used = usage.with_run_usage(item.used.merge(outcome.used), item.run_id).model_dump(mode="json")
    if outcome.review is None:
        explanation = outcome.report.explain() if outcome.report else ""
        item.last_error = "" if passed else "\n".join(filter(None, (outcome.error, explanation)))
    item.save(update_fields=["budget_used", "last_error"])
    if passed:
        texts: dict[str, Any] = {"summary": outcome.summary, "result": outcome.result}
        next_steps = list(outcome.next_steps)
        completion.end_delivered(delivery, item, WorkItemStatus.DONE, WorkReason.NONE, next_steps=next_steps, **texts)
    # After `passed`: what has been done and verified is done, although it was cancelled meanwhile.
    elif course.cancelled_by:
        cancellation.end_cancelled(delivery, item)
    elif outcome.review:
        gate_pauses.pause_item(item, course, outcome.review)
        completion.finish_delivery(delivery)
    elif outcome.stop:
        status = _STOPPED_AS.get(outcome.stop, WorkItemStatus.STUCK)
        completion.end_delivered(delivery, item, status, outcome.stop, error=item.last_error)
    else:
        return failure_handling.handle_failed_attempt(delivery, item, course)
    return True


def _close_attempt(attempt: Attempt, outcome: AttemptOutcome, *, passed: bool) -> None:
    attempt.status = AttemptStatus.PASSED if passed else AttemptStatus.FAILED
    attempt.status = AttemptStatus.PAUSED if outcome.review else attempt.status
    attempt.summary, attempt.error = outcome.summary, outcome.error
    attempt.artifacts, attempt.model_name = list(outcome.artifacts), outcome.model_name
    used = BudgetUsed.model_validate(attempt.used).merge(outcome.used)
    attempt.used, attempt.ended_at = used.model_dump(mode="json"), now()
    attempt.save()
    ledger_entries.record_failures(attempt, outcome.lines)
    data: dict[str, int | str | bool] = {"attempt": attempt.number, "passed": passed}
    data |= {"prompt": outcome.prompt} if outcome.prompt else {}
    if outcome.report is not None:
        results = [vars(result) for result in outcome.report.results]
        VerificationRun.objects.create(
            attempt=attempt, all_passed=outcome.report.all_passed, results=results, ran_at=now()
        )
        data |= {"checks": len(outcome.report.results), "failed": len(outcome.report.failed)}
    subject = f"work:{attempt.work_item_id}"
    if outcome.review is None:
        record(AuditEvent.WORK_ATTEMPTED, subject=subject, data=data)
    for event, noted in outcome.notes:
        record(AuditEvent(event), subject=subject, data=noted)
    # The model claims files that no tool has made: recorded, and never shown as results.
    invented = set(outcome.claimed_artifacts) - set(outcome.artifacts)
    if invented:
        record(AuditEvent.ARTIFACT_REF_MISMATCH, subject=subject, data={"invented": len(invented)})
