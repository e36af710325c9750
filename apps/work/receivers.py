"""Receive the signals that concern work: decisions about cards, cards that ended, calls that took effect."""

from __future__ import annotations

from django.utils.functional import Promise

from apps.approvals.enums import ApprovalScope, ApprovalVerdict, CardKind, CardStatus, Withdrawal
from apps.approvals.models import ApprovalToken, Card, Decision
from apps.approvals.signals import before_card_approval, card_changed, card_decided, card_edited, pause_ended
from apps.gates.signals import counting_gates
from apps.guard.signals import call_done
from apps.work import rules
from apps.work.enums import WorkItemStatus, WorkItemType, WorkReason
from apps.work.locks import lock_batch, lock_item
from apps.work.models import WorkItem
from apps.work.services import (
    authorization,
    batches,
    cancellation,
    candidates,
    drafts,
    edits,
    fresh_cards,
    gate_pauses,
    goal_cycles,
    goals,
    ledger_entries,
    projects,
    undo,
)
from apps.work.services.approval_requests import WORK_ITEM
from apps.work.services.batch_cards import BATCH
from apps.work.signals import work_changed


@card_decided.connect
def _on_card_decided(card: Card, decision: Decision, token: ApprovalToken | None) -> None:
    if card.subject_kind == BATCH:
        batches.on_decided(card, decision, token)
    if card.subject_kind != WORK_ITEM:
        return
    item = lock_item(card.subject_id)
    if WorkItemStatus(item.status) in rules.FINAL and item.type != WorkItemType.GOAL:
        return
    if item.type == WorkItemType.GOAL:
        goals.attach_standing_approval(item, token)
    elif token is None and decision.verdict == ApprovalVerdict.DECLINED:
        authorization.reject(item, WorkReason.DECLINED)
    elif token is None:
        candidates.on_card_answered(item, card, decision)
    else:
        authorization.authorize(item, token)


@card_edited.connect
def _on_card_edited(old: Card, new: Card) -> None:
    if new.subject_kind == BATCH:
        batches.apply_selection(lock_batch(new.subject_id), new.payload)
    elif new.subject_kind == WORK_ITEM and new.scope == ApprovalScope.FULL_PLAN:
        item = lock_item(new.subject_id)
        edits.apply_edit(item, new.payload)
        edits.announce_edit(item)
    elif new.subject_kind == WORK_ITEM and new.kind == CardKind.DRAFT_REVIEW:
        drafts.on_draft_edited(lock_item(new.subject_id), new)


@card_changed.connect
def _on_card_changed(card: Card) -> None:
    """End what an expired or withdrawn card asked about. A replaced card ends nothing: its successor still asks."""
    over = card.status in (CardStatus.EXPIRED, CardStatus.WITHDRAWN)
    if not over or card.withdrawal == Withdrawal.REPLACED:
        return
    if card.subject_kind == BATCH:
        batches.expire(lock_batch(card.subject_id), WorkReason.EXPIRED)
    if card.subject_kind != WORK_ITEM:
        return
    item = lock_item(card.subject_id)
    if item.type == WorkItemType.GOAL or WorkItemStatus(item.status) in rules.FINAL:
        return
    if card.status == CardStatus.WITHDRAWN:
        cancellation.end_if_open(item)
    else:
        authorization.reject(item, WorkReason.EXPIRED)


@work_changed.connect
def _on_work_changed(item: WorkItem, status: str, text: str | Promise, next_steps: list[str]) -> None:
    undo.on_work_changed(item)
    projects.on_work_changed(item)
    batches.on_work_changed(item)
    goal_cycles.on_work_changed(item)


counting_gates.connect(goals.add_gates)
before_card_approval.connect(fresh_cards.replace_outdated_card)
before_card_approval.connect(batches.replace_outdated_card)
pause_ended.connect(gate_pauses.on_pause_ended)
call_done.connect(ledger_entries.record_success)
