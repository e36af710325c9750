"""Decisions about this room's cards, and the messages that it carries out."""

from __future__ import annotations

from apps.approvals.models import ApprovalToken, Card, Decision
from apps.approvals.signals import card_decided
from apps.bus.enums import Kind, Queue
from apps.bus.registry import on_dead_letter, register, register_job
from apps.connections import checking, discovering, handlers, holding, keyring_cleanup
from apps.connections.services import recovery, requests

# What waits for a person or a service keeps no worker from its other work.
AT_ONCE = 8


@card_decided.connect
def _on_card_decided(card: Card, decision: Decision, token: ApprovalToken | None) -> None:
    if card.subject_kind == requests.CONNECTION:
        requests.apply_decision(card, token, decision.said)
    elif card.subject_kind == recovery.BROKEN:
        recovery.apply_decision(card, decision)


register(Queue.TRUSTED, Kind.CONNECTION_OWED, handlers.carry_out)
register_job(Kind.CONNECTION_CHECK, checking.check, recurring=True, max_concurrency=AT_ONCE)
register_job(Kind.CONNECTION_DISCOVERY, discovering.discover, max_concurrency=AT_ONCE)
register_job(Kind.CONNECTION_SETUP, holding.hold, max_concurrency=AT_ONCE)
register_job(Kind.KEYRING_CLEANUP, keyring_cleanup.handle_cleanup, recurring=True)
on_dead_letter(discovering.gave_up, Kind.CONNECTION_DISCOVERY)
on_dead_letter(holding.gave_up, Kind.CONNECTION_SETUP)
