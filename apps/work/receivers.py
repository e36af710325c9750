"""What does this room hear from below? Decisions about its cards, cards that ran out, deliveries that failed."""

from __future__ import annotations

from apps.approvals.enums import CardStatus
from apps.approvals.models import ApprovalToken, Card, Decision
from apps.approvals.signals import card_changed, card_decided
from apps.bus.enums import Kind, Queue
from apps.bus.models import QueueMessage
from apps.bus.signals import message_dead, messages_waiting
from apps.work import rules, wakeup
from apps.work.enums import WorkItemStatus, WorkItemType, WorkReason
from apps.work.locks import lock_item
from apps.work.models import WorkItem
from apps.work.services import authorization, goals
from kernel.tenancy import current_tenant_id

WORK_ITEM = "work_item"


@card_decided.connect
def _decided(card: Card, decision: Decision, token: ApprovalToken | None) -> None:
    if card.subject_kind != WORK_ITEM:
        return
    item = lock_item(card.subject_id)
    if item.type == WorkItemType.GOAL:
        goals.settle_standing(item, token)
    elif token is None:
        authorization.refuse(item, WorkReason.DECLINED)
    else:
        authorization.authorize(item, token)


@card_changed.connect
def _ran_out(card: Card) -> None:
    if card.subject_kind != WORK_ITEM or card.status != CardStatus.EXPIRED:
        return
    item = lock_item(card.subject_id)
    if item.type != WorkItemType.GOAL:
        authorization.refuse(item, WorkReason.EXPIRED)


@message_dead.connect
def _undeliverable(message: QueueMessage) -> None:
    if message.kind != Kind.EXECUTION_REQUEST:
        return
    item: WorkItem | None = WorkItem.objects.select_for_update(no_key=True).filter(pk=message.task_id).first()
    if item is not None and WorkItemStatus(item.status) not in rules.FINAL:
        authorization.refuse(item, WorkReason.LOST)


@messages_waiting.connect
def _waiting(queue: str, scope_ids: list[str]) -> None:
    if queue == Queue.EXECUTOR:
        wakeup.after_commit(current_tenant_id())
