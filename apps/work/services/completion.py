"""How does a work item end, and who has to hear of it? The item's end, its runs' end and the delivery's end commit
together or not at all; what did not get done is put before a person in the same transaction (spec 5.1.1, 19.0)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus.deliveries import Delivery
from apps.gates.enums import EscalationKind
from apps.gates.rules import escalation_for, escalation_steps
from apps.gates.schemas import EscalationSpec
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

# Nobody has to look at what a person decided, or called off, or has another plan for.
_EXPECTED = frozenset({WorkReason.DECLINED, WorkReason.EXPIRED, WorkReason.CANCELLED, WorkReason.REPLANNED})
# Retrying is used up by the time an item ends, and a repair is a goal's to start: their fallbacks count.
_TRIED = frozenset({EscalationKind.RETRY, EscalationKind.SPAWN_TASK, EscalationKind.SUPPRESS_AND_REPHRASE})


def end_delivered(
    delivery: Delivery, item: WorkItem, status: WorkItemStatus, reason: WorkReason, *, error: str = "", **changes: Any
) -> None:
    """The delivered item is over. Inside the delivery's last scope."""
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
    """The locked item is over, whoever found that out. `escalation`: what a gate wants to follow, instead of what the
    item itself names."""
    course = lock_course(item)
    if course.waiting_for == Waiting.REVIEW:
        outbox.enqueue_review_withdrawal(item)
    forget_wait(course)
    item.attempts.filter(status=AttemptStatus.PAUSED).update(status=AttemptStatus.FAILED, error=error)
    move(item, status, reason=reason, last_error=error, **changes)
    done = status == WorkItemStatus.DONE
    for run_id in filter(None, (item.run_id, course.plan_run_id)):
        guard.close_run(run_id, status=_run_status(done), reason=_run_reason(reason, done=done))
    if escalation or (not done and reason not in _EXPECTED):
        _escalate(item, escalation or _escalation_name(item, status))


def finish_delivery(delivery: Delivery) -> None:
    """The delivery is over; whoever waited for its place is looked at."""
    pool.release(delivery.message.pk)
    delivery.finish()
    fault_points.reach("work.before_ack")


def _run_status(done: bool) -> RunStatus:
    return RunStatus.COMPLETED if done else RunStatus.FAILED


def _run_reason(reason: WorkReason, *, done: bool) -> TerminalReason:
    if reason == WorkReason.CANCELLED:
        return TerminalReason.CANCELLED
    return TerminalReason.COMPLETED if done else TerminalReason.FAILED


def _escalate(item: WorkItem, name: str) -> None:
    """Resolve an escalation by name: the item's own map, then its deployment's goal's, then the built-in ones; what
    nobody knows is a report (spec 5.1.1)."""
    known = _escalations(item)
    action = _first_action(name, known)
    needs_person = action.action != EscalationKind.RESPOND
    data = {"known": escalation_for(name, known)[1], "person": needs_person}
    record(AuditEvent.WORK_ESCALATED, subject=f"work:{item.pk}", data=data)
    signals.work_escalated(item, action.message or "", needs_person)


def _escalation_name(item: WorkItem, status: WorkItemStatus) -> str:
    spec = item.spec
    stuck = status == WorkItemStatus.STUCK and spec.on_stuck != cascade.CONSULT_PLANNER
    return spec.on_stuck if stuck else spec.on_failure


def _escalations(item: WorkItem) -> Mapping[str, EscalationSpec]:
    goal = active_goal_spec(item.deployment) if item.deployment else None
    return {**(goal.escalation if goal else {}), **item.spec.escalation}


def _first_action(name: str, known: Mapping[str, EscalationSpec]) -> EscalationSpec:
    steps = escalation_steps(name, known)
    return next((step for step in steps if step.action not in _TRIED), escalation_for("report", known)[0])
