"""Cards and tokens for tests, made by the room's own services."""

from __future__ import annotations

import dataclasses
from typing import Any
from uuid import uuid4

from apps.approvals.cards import services
from apps.approvals.cards.schemas import Binding, CardSubject, CardText
from apps.approvals.cards.services import decide_card
from apps.approvals.enums import ApprovalScope, ApprovalVerdict, CardKind
from apps.approvals.models import ApprovalToken, Card
from apps.approvals.registry import on_card
from apps.bus.enums import Kind
from kernel.tenancy import tenant_scope
from tests.approvals import vectors
from tests.factories.bus import carry_out_kinds

for kind in CardKind:
    on_card(kind, "thing", decided=lambda card, decision, token: None)


def make_plan(**fields: Any) -> dict[str, Any]:
    """A plan's 23 fields under a new id."""
    return {**vectors.BASE, "id": str(uuid4()), **fields}


def open_card(tenant: Any, plan: dict[str, Any] | None = None, **fields: Any) -> Card:
    usual = {
        "kind": CardKind.STANDING if fields.get("scope") == ApprovalScope.STANDING else CardKind.PLAN,
        "payload": plan or make_plan(),
        "scope": ApprovalScope.FULL_PLAN,
        "intent": "Change the address on HM-1",
        "rationale": "The customer asked for it.",
        "consequence": {"approve": "Change the address", "decline": "Nothing changes"},
    }
    with tenant_scope(tenant):
        return put({**usual, **fields})


def put(fields: dict[str, Any]) -> Card:
    """`services.open_card`, its parts given as one list of fields, about a thing of its own."""
    rest = {"subject_kind": "thing", "subject_id": uuid4(), "reversible": True, **fields}
    kind, about = rest.pop("kind"), CardSubject(rest.pop("subject_kind"), rest.pop("subject_id"))
    about = dataclasses.replace(about, **_taken(CardSubject, rest))
    binding, text = Binding(**_taken(Binding, rest)), CardText(**_taken(CardText, rest))
    return services.open_card(kind, subject=about, binding=binding, text=text, **rest)


def _taken(part: type[CardSubject | Binding | CardText], rest: dict[str, Any]) -> dict[str, Any]:
    return {field.name: rest.pop(field.name) for field in dataclasses.fields(part) if field.name in rest}


def make_token(tenant: Any, user: Any, plan: dict[str, Any], **terms: Any) -> ApprovalToken:
    """The token of an approved card about `plan`."""
    card = open_card(tenant, plan, **terms)
    with tenant_scope(tenant):
        decision = decide_card(card.pk, user=user, verdict=ApprovalVerdict.APPROVED)
        token: ApprovalToken = decision.token
        return token


def expire_cards(tenant: Any) -> None:
    """Close the cards whose time has run out, as the worker does that is woken for each."""
    carry_out_kinds(tenant, Kind.CARD_EXPIRY)
