"""Register what becomes of cards and pauses about work, and receive the signals that concern it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from apps.approvals.enums import ApprovalVerdict, CardKind, CardStatus
from apps.approvals.models import ApprovalToken, Card, Decision
from apps.approvals.registry import on_card, on_pause_end
from apps.gates.signals import counting_gates
from apps.guard.signals import call_done
from apps.work import rules
from apps.work.enums import WorkItemStatus, WorkReason
from apps.work.locks import lock_item
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
from apps.work.signals import Progress, work_changed

# An answer about an item that is neither an approval nor a rejection of it.
Answered = Callable[[WorkItem, Card, Decision], None]


def _leave_out(item: WorkItem, card: Card, decision: Decision) -> None:
    authorization.reject(item, WorkReason.LEFT_OUT)


def _decide_item(
    card: Card, decision: Decision, token: ApprovalToken | None, *, answered: Answered = _leave_out
) -> None:
    item = lock_item(card.subject_id)
    # It may have ended while the answer waited for its lock, such as by a cancellation.
    if WorkItemStatus(item.status) in rules.FINAL:
        return
    if token is not None:
        authorization.authorize(item, token)
    elif decision.verdict == ApprovalVerdict.DECLINED:
        authorization.reject(item, WorkReason.DECLINED, because=decision.decline_reason)
    else:
        answered(item, card, decision)


def _end_item(card: Card) -> None:
    """End what an expired or withdrawn card asked about."""
    item = lock_item(card.subject_id)
    if WorkItemStatus(item.status) in rules.FINAL:
        return
    if card.status == CardStatus.WITHDRAWN:
        cancellation.end_if_open(item)
    else:
        authorization.reject(item, WorkReason.EXPIRED)


def _decide_goal(card: Card, decision: Decision, token: ApprovalToken | None) -> None:
    goals.attach_standing_approval(lock_item(card.subject_id), token)


def _edit_plan(old: Card, new: Card) -> None:
    item = lock_item(new.subject_id)
    edits.apply_edit(item, new.payload)
    edits.announce_edit(item)


def _edit_draft(old: Card, new: Card) -> None:
    drafts.on_draft_edited(lock_item(new.subject_id), new)


on_card(
    CardKind.PLAN,
    WORK_ITEM,
    decided=_decide_item,
    edited=_edit_plan,
    ended=_end_item,
    before_approval=fresh_cards.replace_outdated_card,
)
on_card(
    CardKind.DRAFT_REVIEW,
    WORK_ITEM,
    decided=partial(_decide_item, answered=candidates.on_draft_answered),
    edited=_edit_draft,
    ended=_end_item,
    before_approval=fresh_cards.replace_outdated_card,
)
on_card(
    CardKind.DECISION,
    WORK_ITEM,
    decided=partial(_decide_item, answered=candidates.on_question_answered),
    ended=_end_item,
)
on_card(CardKind.STANDING, WORK_ITEM, decided=_decide_goal)
on_card(
    CardKind.BATCH_REVIEW,
    BATCH,
    decided=batches.on_decided,
    edited=batches.apply_selection,
    ended=batches.on_card_ended,
    before_approval=batches.replace_outdated_card,
)
on_card(
    CardKind.POST_EXECUTION,
    BATCH,
    decided=batches.on_decided,
    ended=batches.on_card_ended,
    before_approval=batches.replace_outdated_card,
)
on_pause_end(WORK_ITEM, gate_pauses.on_pause_ended)


@work_changed.connect
def _on_work_changed(item: WorkItem, status: str, progress: Progress) -> None:
    undo.on_work_changed(item)
    projects.on_work_changed(item)
    batches.on_work_changed(item)
    goal_cycles.on_work_changed(item)


counting_gates.connect(goals.add_gates)
call_done.connect(ledger_entries.record_success)
