"""End a work item: the item, its runs and the delivery end in one transaction; unfinished work is escalated in the same
one (spec 5.1.1, 19.0)."""

from __future__ import annotations

from typing import Any

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus.deliveries import Delivery
from apps.gates.enums import EscalationKind
from apps.gates.rules import escalation_for, escalation_steps
from apps.guard import services as guard
from apps.guard.enums import RunStatus, TerminalReason
from apps.work import cascade, pool, signals
from apps.work.enums import AttemptStatus, Waiting, WorkItemStatus, WorkReason
from apps.work.locks import lock_course
from apps.work.models import WorkItem
from apps.work.queries import active_goal_spec
from apps.work.services import outbox
from apps.work.services.items import move
from apps.work.services.wait_state import forget_wait
from kernel import fault_points

# Ends that a person decided, or that another plan follows: no escalation.
_NEEDS_NOBODY = frozenset({WorkReason.DECLINED, WorkReason.EXPIRED, WorkReason.CANCELLED, WorkReason.REPLANNED})
# Retries are used up when an item ends, and only goals start repairs: the fallbacks of these actions apply.
_USED_UP = frozenset({EscalationKind.RETRY, EscalationKind.SPAWN_TASK, EscalationKind.SUPPRESS_AND_REPHRASE})


def end_delivered(
    delivery: Delivery, item: WorkItem, status: WorkItemStatus, reason: WorkReason, *, error: str = "", **changes: Any
) -> None:
    """End the delivered item and its delivery. Inside the delivery's last scope."""
    end_item(item, status, reason, error=error, **changes)
    finish_delivery(delivery)


def end_item(
    item: WorkItem,
    status: WorkItemStatus,
    reason: WorkReason,
    *,
    error: str = "",
    escalation: str = "",
    **changes: Any,
) -> None:
    """End the locked item. `escalation`: replaces the one that the item itself names."""
    course = lock_course(item)
    # A worker may not withdraw cards, so the trusted worker is asked to.
    if course.waiting_for == Waiting.REVIEW:
        outbox.enqueue_review_withdrawal(item)
    forget_wait(course)
    item.attempts.filter(status=AttemptStatus.PAUSED).update(status=AttemptStatus.FAILED, error=error)
    move(item, status, reason=reason, last_error=error, **changes)
    done = status == WorkItemStatus.DONE
    for run_id in filter(None, (item.run_id, course.plan_run_id)):
        run_status = RunStatus.COMPLETED if done else RunStatus.FAILED
        run_reason = TerminalReason.COMPLETED if done else TerminalReason.FAILED
        if reason == WorkReason.CANCELLED:
            run_reason = TerminalReason.CANCELLED
        guard.close_run(run_id, status=run_status, reason=run_reason)
    if escalation or (not done and reason not in _NEEDS_NOBODY):
        spec = item.spec
        stuck = status == WorkItemStatus.STUCK and spec.on_stuck != cascade.CONSULT_PLANNER
        _escalate(item, escalation or (spec.on_stuck if stuck else spec.on_failure))


def finish_delivery(delivery: Delivery) -> None:
    """Finish the delivery and free its pool slot."""
    # Before the delivery ends: a slot that is never released would block the pool.
    pool.release(delivery.message.pk)
    delivery.finish()
    fault_points.reach("work.before_ack")


def _escalate(item: WorkItem, name: str) -> None:
    """Resolve an escalation by name: in the item's own map, then its deployment's goal's, then the built-in ones; an
    unknown name is a report (spec 5.1.1)."""
    goal = active_goal_spec(item.deployment).value if item.deployment else None
    known = {**(goal.escalation if goal else {}), **item.spec.escalation}
    steps = (step for step in escalation_steps(name, known) if step.action not in _USED_UP)
    action = next(steps, escalation_for("report", known)[0])
    needs_person = action.action != EscalationKind.RESPOND
    data = {"known": escalation_for(name, known)[1], "person": needs_person}
    record(AuditEvent.WORK_ESCALATED, subject=f"work:{item.pk}", data=data)
    signals.work_escalated(item, action.message or "", needs_person)
