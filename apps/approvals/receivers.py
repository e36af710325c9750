"""End pauses with their cards, and expire cards when their time is up."""

from __future__ import annotations

from apps.approvals.cards import pauses
from apps.approvals.cards.lifecycle import expire_card
from apps.approvals.enums import CardStatus, Withdrawal
from apps.approvals.models import ApprovalToken, Card, Decision
from apps.approvals.signals import card_changed, card_decided
from apps.bus.deliveries import recurring_handler
from apps.bus.enums import Kind
from apps.bus.registry import register_job


@card_decided.connect
def _end_decided_pause(card: Card, decision: Decision, token: ApprovalToken | None) -> None:
    if card.subject_kind == pauses.GATE_PAUSE:
        pauses.apply_decision(card, decision, token)


@card_changed.connect
def _end_undecided_pause(card: Card) -> None:
    over = card.status in (CardStatus.EXPIRED, CardStatus.WITHDRAWN) and card.withdrawal != Withdrawal.REPLACED
    if over and card.subject_kind == pauses.GATE_PAUSE:
        pauses.apply_card_end(card)


register_job(Kind.CARD_EXPIRY, recurring_handler(expire_card), recurring=True)
