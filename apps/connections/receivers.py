"""Decisions about this room's cards, and the messages that it carries out."""

from __future__ import annotations

from apps.approvals.models import ApprovalToken, Card, Decision
from apps.approvals.signals import card_decided
from apps.bus.enums import Kind, Queue
from apps.bus.registry import register, register_later, when_dead
from apps.connections import attending, checking, discovering, holding, strays
from apps.connections.services import recovering, requesting

# What waits for a person or a service keeps no worker from its other work.
AT_ONCE = 8


@card_decided.connect
def _decided(card: Card, decision: Decision, token: ApprovalToken | None) -> None:
    if card.subject_kind == requesting.CONNECTION:
        requesting.decided(card, token, decision.said)
    elif card.subject_kind == recovering.BROKEN:
        recovering.decided(card, decision)


register(Queue.TRUSTED, Kind.CONNECTION_OWED, attending.carry_out)
register_later(Kind.CONNECTION_CHECK, checking.check, standing=True, at_once=AT_ONCE)
register_later(Kind.CONNECTION_DISCOVERY, discovering.discover, at_once=AT_ONCE)
register_later(Kind.CONNECTION_SETUP, holding.hold, at_once=AT_ONCE)
register_later(Kind.KEYRING_CLEANUP, strays.clear_due, standing=True)
when_dead(discovering.gave_up, Kind.CONNECTION_DISCOVERY)
when_dead(holding.gave_up, Kind.CONNECTION_SETUP)
