"""What is left to a web process? To ask people: workers may not open cards (silas_platform.worker_rights).

Each is owed as a message on the proxy queue; `apps.work.handlers` is its consumer, in a web process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from apps.bus import services as bus
from apps.bus.enums import ErrorCode, ExecutionStatus, Kind, Queue, Sender
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
# A scope with a word in front is no conversation (apps.sessions.runner).
SCOPE = "desk"


def enqueue_card(item: WorkItem) -> None:
    """Owe a card about an item that waits."""
    _enqueue(ASK, item.pk, trace_id=item.trace_id)


def enqueue_fresh_card(item: WorkItem) -> None:
    """Owe a fresh card about an item whose records changed after it was approved, once for each delivery."""
    deliveries = lock_course(item).deliveries
    _enqueue(ASK_AGAIN, item.pk, trace_id=item.trace_id, message_id=f"{ASK_AGAIN}:{item.pk}:{deliveries}")


def enqueue_review(item: WorkItem, pause_id: UUID) -> None:
    """Owe the card of a pause."""
    _enqueue(REVIEW, item.pk, trace_id=item.trace_id, message_id=f"{REVIEW}:{pause_id}", pause=str(pause_id))


def enqueue_review_withdrawal(item: WorkItem) -> None:
    """Owe the withdrawal of what asks about an item that ended while it waited: cards are locked before items."""
    _enqueue(REVIEW_OVER, item.pk, trace_id=item.trace_id)


def enqueue_result(subject_id: UUID, *, trace_id: str, failed: WorkItem | None = None) -> None:
    """Say that a batch or one item is over, for the card about what was done; `failed`: of a batch, what was not."""
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
        **_why(failed),
    )


def _why(failed: WorkItem | None) -> dict[str, Any]:
    """Its reason where the bus has that word, else the most general one; the work item itself has the exact one."""
    if failed is None:
        return {}
    code = ErrorCode(failed.reason) if failed.reason in ErrorCode.values else ErrorCode.TOOL_FAILURE
    return {
        "error_code": code,
        "retryable": False,
        "origin_agent": Sender.EXECUTOR,
        "attempt_number": failed.attempts_made,
    }


def enqueue_candidates(goal_id: UUID, found: Sequence[Mapping[str, Any]], *, cycle: str, trace_id: str) -> None:
    """Owe the cards about what a goal has found; `cycle` names the look that found it."""
    _enqueue(ROUTE, goal_id, trace_id=trace_id, message_id=f"{ROUTE}:{cycle}", found=[dict(each) for each in found])


def enqueue_rewording(item: WorkItem, card_id: UUID) -> None:
    """Owe the draft of this card once more, in other words."""
    _enqueue(REWORD, item.pk, trace_id=item.trace_id, message_id=f"{REWORD}:{card_id}", card=str(card_id))


def _enqueue(event: str, subject_id: UUID, *, trace_id: str, message_id: str = "", **more: Any) -> None:
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
