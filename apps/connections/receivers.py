"""What does this room hear from below? Decisions about its cards, and what workers leave to web processes."""

from __future__ import annotations

from apps.approvals.models import ApprovalToken, Card, Decision
from apps.approvals.signals import card_decided
from apps.bus.enums import Kind, Queue
from apps.bus.registry import register
from apps.connections import attending
from apps.connections.services import recovering, requesting


@card_decided.connect
def _decided(card: Card, decision: Decision, token: ApprovalToken | None) -> None:
    if card.subject_kind == requesting.CONNECTION:
        requesting.decided(card, token, decision.said)
    elif card.subject_kind == recovering.BROKEN:
        recovering.decided(card, decision)


register(Queue.TRUSTED, Kind.CONNECTION_OWED, attending.carry_out)
