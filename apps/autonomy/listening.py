"""Which decisions of people does this room hear of, and what does it owe web processes? Inside the transactions that
told it (`kernel.events`). Imported once, when Django is ready."""

from __future__ import annotations

from apps.approvals.models import ApprovalToken, Card, Decision
from apps.approvals.signals import card_decided, card_edited
from apps.autonomy import attending, queries
from apps.autonomy.services import (
    calibrating,
    owing,
    precedents,
    preferring,
    proposals,
    provenance,
    raising,
    suggesting,
)
from apps.autonomy.signals import session_ended
from apps.bus.enums import Kind, Queue
from apps.bus.registry import register
from apps.skills.signals import skill_purged
from apps.work.enums import WorkItemStatus
from apps.work.models import WorkItem
from apps.work.signals import work_changed


@card_decided.connect
def _decided(card: Card, decision: Decision, token: ApprovalToken | None) -> None:
    match card.subject_kind:
        case proposals.PROPOSAL:
            proposals.decided(card, decision)
        case precedents.CONTEXT:
            precedents.decided(card, decision)
        case calibrating.PROPOSAL:
            calibrating.decided(card, decision, token)
        case suggesting.SUGGESTION:
            suggesting.decided(card, decision)
        case raising.SUBJECT:
            raising.decided(card, decision, token)
        case preferring.PREFERENCE:
            preferring.decided(card, decision)
        case _:
            calibrating.record_decision(card, decision)


@card_edited.connect
def _edited(old: Card, new: Card) -> None:
    calibrating.record_edit(old, new)


@work_changed.connect
def _worked(item: WorkItem, status: str, text: str, next_steps: list[str]) -> None:
    """Done, and it says what could follow: only where unattended work is on, which suggestions need (spec 11)."""
    if item.status == WorkItemStatus.DONE and next_steps and queries.settings_of().enabled:
        owing.owe(owing.AFTER_WORK, item.pk)


@skill_purged.connect
def _purged(name: str, actor: str) -> None:
    provenance.purge(provenance.Origin("skill", name), actor=actor)


session_ended.connect(attending.owe_cards)
register(Queue.TRUSTED, Kind.REVIEW_OWED, attending.carry_out)
