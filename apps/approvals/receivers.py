"""Register what becomes of gates' cards, expire cards when their time is up, and delete old links to them."""

from __future__ import annotations

from apps.approvals.cards import decision_links, pauses
from apps.approvals.cards.lifecycle import expire_card
from apps.approvals.enums import CardKind
from apps.approvals.registry import on_card
from apps.bus import retention
from apps.bus.deliveries import recurring_handler
from apps.bus.enums import Kind
from apps.bus.registry import register_job

on_card(CardKind.GATE, pauses.GATE_PAUSE, decided=pauses.apply_decision, ended=pauses.apply_card_end)
register_job(Kind.CARD_EXPIRY, recurring_handler(expire_card), recurring=True)
retention.register(decision_links.delete_old)
