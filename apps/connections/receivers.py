"""Receivers of decisions about this room's cards. They run in the transaction that decides."""

from __future__ import annotations

from apps.approvals.models import ApprovalToken, Card, Decision
from apps.approvals.signals import card_decided
from apps.connections.services import recovery, requests


@card_decided.connect
def _on_card_decided(card: Card, decision: Decision, token: ApprovalToken | None) -> None:
    if card.subject_kind == requests.CONNECTION:
        requests.apply_decision(card, token, decision.said)
    elif card.subject_kind == recovery.BROKEN:
        recovery.apply_decision(card, decision)
