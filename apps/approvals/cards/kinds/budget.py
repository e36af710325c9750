"""Raised limits of unattended sessions. Opened and worded by `apps.autonomy.services.limit_increases`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from apps.approvals.cards.kinds.base import Kind
from apps.approvals.cards.schemas import BoundPayload, Key
from apps.approvals.enums import ApprovalScope, CardKind, Pace
from kernel.language import gettext_lazy as _


class BudgetPayload(BoundPayload):
    """A raised budget: each limit before and after."""

    before: dict[Key, Any]
    after: Annotated[dict[Key, Any], Field(min_length=1, max_length=12)]


class Budget(Kind):
    kind = CardKind.BUDGET
    label = _("Budget")
    payload = BudgetPayload
    scopes = frozenset({ApprovalScope.BUDGET})
    pace = Pace.CALM
