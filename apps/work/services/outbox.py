"""Queue work for a process that may open cards; workers may not (silas_platform.worker_rights).

Each request is a message on the trusted queue; `apps.work.handlers` handles it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from apps.bus import services as bus
from apps.bus.enums import ExecutionStatus, FailureCode, Kind, Queue, Sender
from apps.bus.schemas import StatusPayload
from apps.work.locks import lock_course
from apps.work.models import WorkItem
from kernel.taint import Taint

ASK, ASK_AGAIN, REVIEW, REVIEW_OVER, ROUTE, REWORD = (
    "ask",
    "ask_again",
    "review",
    "review_over",
    "route",
    "reword",
)
# The prefix marks a scope that is not a conversation's id (apps.sessions.runner).
SCOPE = "desk"


def enqueue_card(item: WorkItem) -> None:
    """Request a card about an item that waits."""
    _enqueue(ASK, item.pk, trace_id=item.trace_id)


def enqueue_fresh_card(item: WorkItem) -> None:
    """Request a fresh card about an item whose records changed after approval, once per delivery."""
    deliveries = lock_course(item).deliveries
    _enqueue(ASK_AGAIN, item.pk, trace_id=item.trace_id, message_id=f"{ASK_AGAIN}:{item.pk}:{deliveries}")


def enqueue_review(item: WorkItem, pause_id: UUID) -> None:
    """Request the card of a gate pause."""
    _enqueue(REVIEW, item.pk, trace_id=item.trace_id, message_id=f"{REVIEW}:{pause_id}", pause=str(pause_id))


def enqueue_review_withdrawal(item: WorkItem) -> None:
    """Request the withdrawal of the cards of an item that ended while it waited. Done later, because cards are locked
    before items."""
    _enqueue(REVIEW_OVER, item.pk, trace_id=item.trace_id)


def enqueue_result(subject_id: UUID, *, trace_id: str, failed: WorkItem | None = None) -> None:
    """Report that a batch or one item is over, for its results card; `failed`: an item that was not done."""
    status = ExecutionStatus.FAILED if failed else ExecutionStatus.DONE
    bus.send_message(
        Queue.TRUSTED,
        kind=Kind.EXECUTION_STATUS,
        scope_id=f"{SCOPE}:{subject_id}",
        sender=Sender.RUNTIME,
        task_id=subject_id,
        trace_id=trace_id,
        message_id=f"over:{subject_id}",
        payload=StatusPayload(status=status),
        taint=Taint.AUTH,
        **_failure_fields(failed),
    )


def _failure_fields(failed: WorkItem | None) -> dict[str, Any]:
    """Return the failure as the bus has it, or the most general code; the work item has the exact reason."""
    if failed is None:
        return {}
    code = FailureCode(failed.reason) if failed.reason in FailureCode.values else FailureCode.TOOL_FAILURE
    return {
        "error_code": code,
        "retryable": False,
        "origin_agent": Sender.EXECUTOR,
        "attempt_number": failed.attempts_made,
    }


def enqueue_candidates(goal_id: UUID, found: Sequence[Mapping[str, object]], *, cycle: str, trace_id: str) -> None:
    """Request the cards about what a goal has found; `cycle`: the cycle that found it."""
    _enqueue(
        ROUTE, goal_id, trace_id=trace_id, message_id=f"{ROUTE}:{cycle}", found=[dict(candidate) for candidate in found]
    )


def enqueue_rewording(item: WorkItem, card_id: UUID) -> None:
    """Request that the planner rewords the draft of this card."""
    _enqueue(REWORD, item.pk, trace_id=item.trace_id, message_id=f"{REWORD}:{card_id}", card=str(card_id))


def _enqueue(event: str, subject_id: UUID, *, trace_id: str, message_id: str = "", **more: object) -> None:
    bus.send_message(
        Queue.TRUSTED,
        kind=Kind.SYSTEM_EVENT,
        scope_id=f"{SCOPE}:{subject_id}",
        sender=Sender.RUNTIME,
        task_id=subject_id,
        trace_id=trace_id,
        message_id=message_id or f"{event}:{subject_id}",
        payload={"event": event, **more},
        taint=Taint.AUTH,
    )
