"""Decide what follows a failed attempt, and pause an item for the planner. A wait is a row with an end, never a thread
(spec 19.5.3).

A pause acknowledges the delivery; the answer, or the end of the wait, queues the item for the executors again.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.conf import settings

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus import services as bus
from apps.bus.deliveries import Delivery
from apps.bus.enums import FailureCode, Kind, Queue, Sender
from apps.bus.schemas import ErrorPayload, ReplanRequest
from apps.guard import services as guard
from apps.work import cascade
from apps.work.budgets import BudgetUsed
from apps.work.cascade import Step
from apps.work.enums import Waiting, WorkItemStatus, WorkItemType, WorkReason
from apps.work.locks import lock_course, lock_item
from apps.work.models import Course, Planning, WorkItem
from apps.work.services import completion, execution_queue, gate_pauses
from apps.work.services.items import move
from apps.work.services.wait_state import begin_wait, forget_wait
from kernel.clock import now
from kernel.taint import Taint


def handle_failed_attempt(delivery: Delivery, item: WorkItem, course: Course) -> bool:
    """Retry, consult, re-plan or escalate: True when this delivery is over, False for another attempt."""
    counter = item.used.exhausted(item.spec.budget)
    plan, account = budget_account_of(item, course)
    step = cascade.next_step(
        attempts=item.attempts_made,
        exhausted=bool(counter),
        on_stuck=item.spec.on_stuck,
        planner_may_help=not account.used.exhausted(plan.spec.budget, ignoring=frozenset({"attempts"})),
        # A task of a project cannot be replanned (`_in_project`), which the maximum depth rules out.
        depth=cascade.MAX_DEPTH if _in_project(item) else course.depth,
    )
    match step:
        case Step.RETRY:
            return False
        case Step.CONSULT:
            _wait(item, course, Waiting.GUIDANCE, settings.GUIDANCE_SECONDS)
            _send_question(item, 0)
            record(AuditEvent.PLANNER_CONSULTED, subject=f"work:{item.pk}", data={"attempt": item.attempts_made})
        case Step.REPLAN:
            _wait(item, course, Waiting.REPLAN, settings.REPLAN_SECONDS, reason=_stop_reason(item, counter))
            _send_replan_request(item, course, 0)
            record(AuditEvent.REPLAN_ASKED, subject=f"work:{item.pk}", data={"depth": course.depth + 1})
        case Step.ESCALATE:
            error = item.last_error or counter
            completion.end_item(item, WorkItemStatus.STUCK, _stop_reason(item, counter), error=error)
    completion.finish_delivery(delivery)
    return True


def _stop_reason(item: WorkItem, counter: str) -> WorkReason:
    return WorkReason.VERIFICATION if counter == "attempts" and item.last_error else WorkReason.BUDGET


def budget_account_of(item: WorkItem, course: Course) -> tuple[WorkItem, Course]:
    """Return whose budget pays for the planner's help: the plan's, not the task's (contract silas 5.1). The tasks of a
    project share its account; a lone task is its own plan, and keeps this cost apart."""
    if _in_project(item):
        assert item.parent is not None
        return item.parent, lock_course(item.parent)
    return item, course


def _in_project(item: WorkItem) -> bool:
    """A project's approval names its tasks by their plans, so replanning a task would need another project."""
    return item.parent is not None and item.parent.type == WorkItemType.PROJECT


def repeat_question(item: WorkItem, course: Course, planning: Planning) -> None:
    """Research has ended: ask the same question again if the item still waits for it."""
    if course.waiting_for == Waiting.GUIDANCE == planning.purpose:
        _send_question(item, planning.rounds)
    elif course.waiting_for == Waiting.REPLAN == planning.purpose:
        _send_replan_request(item, course, planning.rounds)


def _send_question(item: WorkItem, round_: int) -> None:
    problem = ErrorPayload(
        error_code=FailureCode.VERIFICATION_FAILED,
        retryable=True,
        origin_agent=Sender.EXECUTOR,
        attempt_number=item.attempts_made,
        detail="the attempt did not pass its checks",
    )
    bus.send_message(
        Queue.PLANNER,
        kind=Kind.CONSULT_PLANNER,
        scope_id=item.pk,
        sender=Sender.RUNTIME,
        payload=problem,
        trace_id=item.trace_id,
        message_id=f"{question_id(item)}:{round_}",
        attempt_number=item.attempts_made,
        task_id=item.pk,
        taint=Taint.AUTH,
    )


def question_id(item: WorkItem) -> str:
    return f"consult:{item.pk}:{item.attempts_made}"


def _send_replan_request(item: WorkItem, course: Course, round_: int) -> None:
    bus.send_message(
        Queue.PLANNER,
        kind=Kind.REPLAN_REQUEST,
        scope_id=item.pk,
        sender=Sender.RUNTIME,
        payload=ReplanRequest(depth=course.depth + 1),
        trace_id=item.trace_id,
        message_id=f"replan:{item.pk}:{round_}",
        task_id=item.pk,
        attempt_number=item.attempts_made,
        taint=Taint.AUTH,
    )


def _wait(
    item: WorkItem, course: Course, kind: Waiting, seconds: float, *, reason: WorkReason = WorkReason.NONE
) -> None:
    """Begin the wait. The planner's call is counted before it is made, so that a lost one counts too."""
    _, account = budget_account_of(item, course)
    account.plan_used = account.used.merge(BudgetUsed(planner_calls=1)).model_dump(mode="json")
    account.save(update_fields=["plan_used"])
    course.guidance = ""
    begin_wait(course, kind, now() + timedelta(seconds=seconds))
    move(item, WorkItemStatus.PAUSED, reason=reason)


def take_guidance(item_id: UUID, *, answers: str, text: str) -> bool:
    """Resume with the planner's answer to the question `answers`; False if the item no longer waits for it."""
    item = lock_item(item_id)
    course = lock_course(item)
    # An answer to an earlier question, or one that comes after the wait has ended, changes nothing.
    waits = course.waiting_for == Waiting.GUIDANCE and answers == question_id(item)
    outcome = "in_time" if waits else "late"
    record(AuditEvent.GUIDANCE_GIVEN, subject=f"work:{item.pk}", data={"outcome": outcome})
    if waits:
        _resume(item, course, text, resumes=answers)
    return waits


def _resume(item: WorkItem, course: Course, guidance: str, *, resumes: str | None = None) -> None:
    forget_wait(course)
    _, account = budget_account_of(item, course)
    if guidance and item.run_id and account.plan_run_id:
        # Advice from a run that read instructions to the assistant makes the next attempt as limited as that run.
        guard.copy_mark(account.plan_run_id, to=item.run_id)
    course.guidance = guidance
    course.save(update_fields=["guidance"])
    execution_queue.enqueue(item, resumes=resumes)


def end_wait(item_id: UUID) -> None:
    """Continue without an answer: without advice it is retried, without another plan or review the item ends."""
    # One moment for both: a review whose time passes in between would end here, with its pause left open.
    moment = now()
    gate_pauses.expire_overdue(item_id, moment)
    item = lock_item(item_id)
    course = lock_course(item)
    if course.waiting_until is None or course.waiting_until > moment:
        return
    if course.waiting_for == Waiting.GUIDANCE:
        record(AuditEvent.GUIDANCE_GIVEN, subject=f"work:{item.pk}", data={"outcome": "timeout"})
        _resume(item, course, "")
    else:
        if course.waiting_for == Waiting.REPLAN:
            record(AuditEvent.REPLAN_ENDED, subject=f"work:{item.pk}", data={"outcome": "timeout"})
        give_up(item)


def give_up(item: WorkItem) -> None:
    """End the item for the reason it was paused for, without another plan; a person looks at it."""
    completion.end_item(item, WorkItemStatus.STUCK, WorkReason(item.reason), error=item.last_error)
