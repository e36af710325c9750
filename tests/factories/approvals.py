"""Cards and tokens for tests, made by the room's own services."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from apps.approvals import services
from apps.approvals.enums import ApprovalScope, ApprovalVerdict, CardKind
from apps.approvals.models import ApprovalToken, Card
from kernel.tenancy import tenant_scope
from tests.approvals import vectors


def make_plan(**fields: Any) -> dict[str, Any]:
    """A plan's 23 fields under a new id."""
    return {**vectors.BASE, "id": str(uuid4()), **fields}


def open_card(tenant: Any, plan: dict[str, Any] | None = None, **fields: Any) -> Card:
    plan = plan or make_plan()
    with tenant_scope(tenant):
        return services.open_card(
            CardKind.PLAN,
            **{
                "subject_kind": "thing",
                "subject_id": uuid4(),
                "payload": plan,
                "scope": ApprovalScope.FULL_PLAN,
                "intent": "Change the address on HM-1",
                "rationale": "The customer asked for it.",
                "consequence": {"approve": "Change the address", "decline": "Nothing changes"},
                "reversible": True,
                **fields,
            },
        )


def make_token(tenant: Any, user: Any, plan: dict[str, Any], **terms: Any) -> ApprovalToken:
    """The token of an approved card about `plan`."""
    card = open_card(tenant, plan, **terms)
    with tenant_scope(tenant):
        decision = services.decide_card(card.pk, user=user, verdict=ApprovalVerdict.APPROVED)
        token: ApprovalToken = decision.token
        return token
