"""News from below (decisions about cards, cards that ran out, deliveries that failed, calls that took effect), and the
messages that this room carries out."""

from __future__ import annotations

from apps.approvals.enums import ApprovalScope, ApprovalVerdict, CardKind, CardStatus, Withdrawal
from apps.approvals.models import ApprovalToken, Card, Decision
from apps.approvals.signals import card_changed, card_decided, card_edited, card_relied_on, pause_ended
from apps.bus.deliveries import recurring_handler
from apps.bus.enums import Kind, Queue
from apps.bus.models import QueueMessage
from apps.bus.registry import on_dead_letter, register, register_job
from apps.gates.signals import counting_gates
from apps.guard.signals import call_done
from apps.work import attending, checking, executor, planner, pool, research, rules
from apps.work.enums import WorkItemStatus, WorkItemType, WorkReason
from apps.work.locks import lock_batch, lock_item
from apps.work.models import WorkItem
from apps.work.services import (
    authorization,
    batches,
    cancelling,
    cycles,
    desk,
    documents,
    drafting,
    editing,
    ending,
    fresh_cards,
    gate_pauses,
    goals,
    projects,
    recording,
    replanning,
    researching,
    routing,
    undoing,
)
from apps.work.services.asking import WORK_ITEM, is_unasked
from apps.work.services.asking_batches import BATCH
from apps.work.signals import work_changed

counting_gates.connect(goals.add_gates)


@card_decided.connect
def _decided(card: Card, decision: Decision, token: ApprovalToken | None) -> None:
    if card.subject_kind == BATCH:
        batches.decided(card, decision, token)
    if card.subject_kind != WORK_ITEM:
        return
    item = lock_item(card.subject_id)
    if WorkItemStatus(item.status) in rules.FINAL and item.type != WorkItemType.GOAL:
        return
    if item.type == WorkItemType.GOAL:
        goals.settle_standing(item, token)
    elif token is None and decision.verdict == ApprovalVerdict.DECLINED:
        authorization.refuse(item, WorkReason.DECLINED)
    elif token is None:
        routing.answered(item, card, decision)
    else:
        authorization.authorize(item, token)


@card_edited.connect
def _edited(old: Card, new: Card) -> None:
    if new.subject_kind == BATCH:
        batches.take_selection(lock_batch(new.subject_id), new.payload)
    elif new.subject_kind == WORK_ITEM and new.scope == ApprovalScope.FULL_PLAN:
        item = lock_item(new.subject_id)
        editing.take_edit(item, new.payload)
        editing.tell(item)
    elif new.subject_kind == WORK_ITEM and new.kind == CardKind.DRAFT_REVIEW:
        drafting.reworded(lock_item(new.subject_id), new)


@card_changed.connect
def _came_to_nothing(card: Card) -> None:
    """Its time was up, or somebody took it back: nothing runs. A card that another one replaced still asks."""
    over = card.status in (CardStatus.EXPIRED, CardStatus.WITHDRAWN)
    if not over or card.withdrawal == Withdrawal.REPLACED:
        return
    if card.subject_kind == BATCH:
        batches.came_to_nothing(lock_batch(card.subject_id), WorkReason.EXPIRED)
    if card.subject_kind != WORK_ITEM:
        return
    item = lock_item(card.subject_id)
    if item.type == WorkItemType.GOAL or WorkItemStatus(item.status) in rules.FINAL:
        return
    if card.status == CardStatus.WITHDRAWN:
        cancelling.withdrawn(item)
    else:
        authorization.refuse(item, WorkReason.EXPIRED)


def _undeliverable(message: QueueMessage) -> bool:
    """An item that would wait for ever ends, which asks for a person in its conversation."""
    pool.leave(message.pk)
    if message.task_id is None or not WorkItem.objects.filter(pk=message.task_id).exists():
        return False
    item = lock_item(message.task_id)
    if WorkItemStatus(item.status) in rules.FINAL or not _waits_for(item, message):
        return False
    ending.settle(item, WorkItemStatus.BLOCKED, WorkReason.LOST, error=message.reason)
    return True


def _waits_for(item: WorkItem, message: QueueMessage) -> bool:
    """Would the item wait for ever without it? Questions to the planner have an end, and a goal is looked at again."""
    event = (message.payload or {}).get("event")
    if event in (desk.ASK, desk.ASK_AGAIN, desk.REWORD):
        return is_unasked(item)
    return message.kind in (Kind.EXECUTION_REQUEST, Kind.PLAN_RESULT) or event == projects.CHECK_EVENT


@work_changed.connect
def _moved(item: WorkItem, status: str, text: str, next_steps: list[str]) -> None:
    undoing.heard(item)
    projects.heard(item)
    batches.heard(item)
    cycles.heard(item)


card_relied_on.connect(fresh_cards.keep_current)
card_relied_on.connect(batches.keep_current)
pause_ended.connect(gate_pauses.move_on)
call_done.connect(recording.write_done)
register(Queue.EXECUTOR, Kind.EXECUTION_REQUEST, executor.carry_out)
register(Queue.PLANNER, Kind.CONSULT_PLANNER, planner.help_out)
register(Queue.PLANNER, Kind.REPLAN_REQUEST, planner.help_out)
register(Queue.RUNTIME, Kind.PLANNER_GUIDANCE, planner.take_guidance)
register(Queue.TRUSTED, Kind.PLAN_RESULT, replanning.adopt)
register(Queue.EXECUTOR, Kind.RESEARCH_REQUEST, research.look_into)
register(Queue.PLANNER, Kind.RESEARCH_RESULT, research.take_result)
register(Queue.TRUSTED, Kind.SYSTEM_EVENT, attending.carry_out)
register(Queue.TRUSTED, Kind.EXECUTION_STATUS, attending.show_done)
register(Queue.EXECUTOR, Kind.SYSTEM_EVENT, checking.check_project)
register_job(Kind.GOAL_CYCLE, checking.look_at_goal, recurring=True)
register_job(Kind.WAIT_END, recurring_handler(researching.end_waits), recurring=True)
register_job(Kind.DOCUMENT_CHANGE, documents.carry_out)
on_dead_letter(
    _undeliverable,
    *(Kind.EXECUTION_REQUEST, Kind.EXECUTION_STATUS, Kind.SYSTEM_EVENT, Kind.PLAN_RESULT, Kind.REPLAN_REQUEST),
    *(Kind.CONSULT_PLANNER, Kind.PLANNER_GUIDANCE, Kind.RESEARCH_REQUEST, Kind.RESEARCH_RESULT),
)
