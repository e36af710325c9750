"""Handle the bus messages of the work room: register each kind, and what becomes of a message that died.

Workers may not open approval cards (`silas_platform.worker_rights`): what they ask for arrives on the queue `trusted`,
where `handle_card_request` opens the card and `handle_execution_status` offers undo. `services.outbox` sends both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from apps.bus.deliveries import Delivery, recurring_handler
from apps.bus.enums import Kind, Queue
from apps.bus.models import QueueMessage
from apps.bus.registry import on_dead_letter, register_job
from apps.bus.registry import register as register_handler
from apps.work import check_runs, executor, planner, pool, researcher, rules
from apps.work.enums import WorkItemStatus, WorkReason
from apps.work.locks import lock_item
from apps.work.models import WorkItem
from apps.work.provenance import origins_in, trace_to
from apps.work.services import (
    batches,
    candidates,
    completion,
    document_changes,
    fresh_cards,
    gate_pauses,
    outbox,
    projects,
    proposals,
    replacement_plans,
    research,
    screening,
    undo,
)
from apps.work.services.approval_requests import needs_card, request_approval
from kernel.provenance import Origin, Traced


def register() -> None:
    """Register the handlers. Called once, when Django is ready."""
    register_handler(Queue.EXECUTOR, Kind.EXECUTION_REQUEST, executor.execute)
    register_handler(Queue.PLANNER, Kind.CONSULT_PLANNER, planner.answer_question)
    register_handler(Queue.PLANNER, Kind.REPLAN_REQUEST, planner.answer_question)
    register_handler(Queue.RUNTIME, Kind.PLANNER_GUIDANCE, planner.take_guidance)
    register_handler(Queue.TRUSTED, Kind.PLAN_RESULT, replacement_plans.adopt_plan)
    register_handler(Queue.EXECUTOR, Kind.RESEARCH_REQUEST, researcher.answer_question)
    register_handler(Queue.PLANNER, Kind.RESEARCH_RESULT, researcher.record_result)
    register_handler(Queue.TRUSTED, Kind.SYSTEM_EVENT, handle_card_request)
    register_handler(Queue.TRUSTED, Kind.EXECUTION_STATUS, handle_execution_status)
    register_handler(Queue.EXECUTOR, Kind.SYSTEM_EVENT, check_runs.run_project_checks)
    register_job(Kind.GOAL_CYCLE, check_runs.run_goal_checks, recurring=True)
    register_job(Kind.WAIT_END, recurring_handler(research.end_waits), recurring=True)
    register_job(Kind.DOCUMENT_CHANGE, document_changes.carry_out)
    on_dead_letter(
        _end_undeliverable,
        *(Kind.EXECUTION_REQUEST, Kind.EXECUTION_STATUS, Kind.SYSTEM_EVENT, Kind.PLAN_RESULT, Kind.REPLAN_REQUEST),
        *(Kind.CONSULT_PLANNER, Kind.PLANNER_GUIDANCE, Kind.RESEARCH_REQUEST, Kind.RESEARCH_RESULT),
    )


async def handle_card_request(delivery: Delivery) -> None:
    """Handle `system_event` on the trusted queue: a card to open, withdraw or reword."""
    if (delivery.message.payload or {}).get("event") == outbox.REWORD:
        await planner.reword_draft(delivery)
    else:
        await delivery.commit(_handle_event, delivery)


async def handle_execution_status(delivery: Delivery) -> None:
    """Handle `execution_status`: a batch or an item is over, so its results card is opened."""
    assert delivery.message.task_id is not None
    await delivery.commit(undo.offer_undo, delivery.message.task_id)


def _handle_event(delivery: Delivery) -> None:
    message = delivery.message
    assert message.task_id is not None
    payload = message.payload or {}
    _EVENTS[payload["event"]](message.task_id, payload, message.trace_id)


def _route_candidates(goal_id: UUID, payload: Mapping[str, Any], trace_id: str) -> None:
    candidates.route_candidates(goal_id, payload["found"], trace_id=trace_id)


def _open_card(item_id: UUID, payload: Mapping[str, object], trace_id: str) -> None:
    item = lock_item(item_id)
    if needs_card(item):
        calls = screening.resolve_calls(item.spec.calls, screening.tools_in(item.spec.skills))
        # A plan that was stored before values had origins.
        if origins_in(item.spec.body) is None:
            proposals.record_origins(item, calls, trace_to(Traced(Origin.AUTHOR)))
        request_approval(item, calls, None)


def _open_fresh_card(item_id: UUID, payload: Mapping[str, object], trace_id: str) -> None:
    item = lock_item(item_id)
    if needs_card(item):
        batches.remove_item(item)
        fresh_cards.open_fresh_card(item)


def _open_gate_card(item_id: UUID, payload: Mapping[str, Any], trace_id: str) -> None:
    gate_pauses.open_card(UUID(payload["pause"]))


def _withdraw_pauses(item_id: UUID, payload: Mapping[str, object], trace_id: str) -> None:
    gate_pauses.withdraw_pauses(item_id)


# What each event of `system_event` does: with the item or goal, the message's payload and trace.
_EVENTS: dict[str, Callable[[UUID, Mapping[str, object], str], None]] = {
    outbox.ASK: _open_card,
    outbox.ASK_AGAIN: _open_fresh_card,
    outbox.REVIEW: _open_gate_card,
    outbox.REVIEW_OVER: _withdraw_pauses,
    outbox.ROUTE: _route_candidates,
}


def _end_undeliverable(message: QueueMessage) -> bool:
    """End an item that would otherwise wait for ever; its end escalates to a person in its conversation."""
    pool.release(message.pk)
    if message.task_id is None or not WorkItem.objects.filter(pk=message.task_id).exists():
        return False
    item = lock_item(message.task_id)
    if WorkItemStatus(item.status) in rules.FINAL or not _depends_on(item, message):
        return False
    completion.end_item(item, WorkItemStatus.BLOCKED, WorkReason.LOST, error=message.reason)
    return True


def _depends_on(item: WorkItem, message: QueueMessage) -> bool:
    """True if nothing else would move the item on. Questions to the planner time out, and goals are checked again."""
    event = (message.payload or {}).get("event")
    if event in (outbox.ASK, outbox.ASK_AGAIN, outbox.REWORD):
        return needs_card(item)
    return message.kind in (Kind.EXECUTION_REQUEST, Kind.PLAN_RESULT) or event == projects.CHECK_EVENT
