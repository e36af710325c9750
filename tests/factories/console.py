"""A browser for tests that is logged in as somebody, and things to look at."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from django.test import Client

from apps.approvals.cards.schemas import Fact
from apps.approvals.enums import ApprovalScope, CardKind, Risk
from apps.approvals.models import Card
from apps.approvals.tokens.payloads import gate_payload
from tests.factories.approvals import open_card

HTMX = {"HTTP_HX_REQUEST": "true"}


def browser(user: Any = None, *, csrf: bool = False) -> Client:
    client = Client(enforce_csrf_checks=csrf)
    if user is not None:
        client.force_login(user)
    return client


def make_held_call(**args: Any) -> dict[str, Any]:
    """What a card about a call that a gate holds back asks for: the lowest rung."""
    call = {"tool": "update_address", "args": args or {"policy": "HM-20418"}}
    payload = gate_payload(str(uuid4()), "on_tool_call", [{"name": "look_first", "reason": ""}], call)
    return {"kind": CardKind.GATE, "scope": ApprovalScope.SINGLE_STEP, "payload": payload, "seconds": 300}


def make_card(tenant: Any, *, risk: Risk = Risk.LOW, **fields: Any) -> Card:
    """A card as the desk of an insurance would show it."""
    asked = make_held_call() if risk == Risk.LOW else {"scope": "full_plan"}
    return open_card(
        tenant,
        **{
            **asked,
            "reversible": True,
            "declared_risk": risk,
            "intent": "Change the postal address on policy HM-20418",
            "rationale": "Maria moved on Monday. Her identity was verified four minutes ago by name and date of birth.",
            "consequence": {"approve": "Change the address", "decline": "Nothing changes"},
            "affected": "1 policy and every letter about it",
            "facts": [
                Fact("Address", before="18 Alder Court, Leeds LS2 7HX", after="Flat 3, 41 Canal Wharf, Leeds LS11 5PS"),
                Fact("Can be undone", text="Yes"),
                Fact("Verified by", text="1 independent check"),
            ],
            "details": {"checks": [{"name": "postcode_is_new"}], "body": "Change it."},
            **fields,
        },
    )
