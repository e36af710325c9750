"""Conversations and desks with gates that ask for a person, and what became of what they hold back."""

from __future__ import annotations

import asyncio
from typing import Any

from apps.approvals.cards.services import answer_card
from apps.approvals.enums import CardKind
from apps.approvals.models import Card, Decision, GatePause
from apps.approvals.queries import face_hash
from apps.gates.schemas import GateSpec
from apps.gates.services import save_gate
from apps.sessions.models import ChatSession, ChronicleEntry, Turn
from kernel.tenancy import tenant_scope
from tests.factories.sessions import make_session, say, served

WAITING = "A colleague is checking this. We'll reply here."
SAFE = "I can't help with that. How else can I assist you?"


def asking_gate(on: str, **fields: Any) -> GateSpec:
    return GateSpec(**{"name": "look", "on": on, "type": "approval_always", "on_block": "polite", **fields})


def gated(deployment: Any, *gates: GateSpec) -> ChatSession:
    """A conversation under these gates."""
    with tenant_scope(deployment.tenant_id):
        for gate in gates:
            save_gate(gate, deployment_id=deployment.pk)
    return make_session(deployment)


def converse(session: ChatSession, *lines: str) -> None:
    """The visitor says the lines, and the web process does what is owed."""
    for line in lines:
        say(session, line)
    serve(session)


def serve(session: ChatSession) -> None:
    asyncio.run(served(session))


def bot_lines(session: ChatSession) -> list[str]:
    with tenant_scope(session.tenant_id):
        rows = ChronicleEntry.objects.filter(session_id=session.pk, sender="bot", kind="message").order_by("seq")
        return list(rows.values_list("text", flat=True))


def turns(session: ChatSession) -> list[tuple[str, str]]:
    with tenant_scope(session.tenant_id):
        rows = Turn.objects.filter(session_id=session.pk).order_by("number", "started_at")
        return list(rows.values_list("status", "reason"))


def pause_of(tenant: Any) -> GatePause:
    """The newest pause."""
    with tenant_scope(tenant):
        found: GatePause = GatePause.objects.latest("created_at")
    return found


def gate_card(tenant: Any) -> Card:
    """The newest gate card."""
    with tenant_scope(tenant):
        card: Card = Card.objects.filter(kind=CardKind.GATE).latest("created_at")
    return card


def gate_cards(tenant: Any) -> int:
    with tenant_scope(tenant):
        return int(Card.objects.filter(kind=CardKind.GATE).count())


def answer(tenant: Any, user: Any, choice: str, card: Card | None = None) -> Decision | Any:
    card = card or gate_card(tenant)
    with tenant_scope(tenant):
        return answer_card(card.pk, user=user, choice=choice, face=face_hash(card))
