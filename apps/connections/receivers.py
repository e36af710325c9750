"""Decisions about this room's cards, and the messages that it carries out."""

from __future__ import annotations

from apps.approvals.models import ApprovalToken, Card, Decision
from apps.approvals.signals import card_decided
from apps.bus.enums import Kind, Queue
from apps.bus.registry import on_dead_letter, register, register_job
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
register_job(Kind.CONNECTION_CHECK, checking.check, recurring=True, max_concurrency=AT_ONCE)
register_job(Kind.CONNECTION_DISCOVERY, discovering.discover, max_concurrency=AT_ONCE)
register_job(Kind.CONNECTION_SETUP, holding.hold, max_concurrency=AT_ONCE)
register_job(Kind.KEYRING_CLEANUP, strays.clear_due, recurring=True)
on_dead_letter(discovering.gave_up, Kind.CONNECTION_DISCOVERY)
on_dead_letter(holding.gave_up, Kind.CONNECTION_SETUP)
