"""More access for a connection. Opened and worded by `apps.connections.services.requests`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from apps.approvals.cards.kinds.base import APPROVAL, REJECTION, Choice, Kind
from apps.approvals.cards.kinds.connection import RightsPayload
from apps.approvals.cards.risk import access_risk
from apps.approvals.cards.schemas import Line
from apps.approvals.enums import ApprovalScope, ApprovalVerdict, CardKind, Risk
from apps.approvals.schemas import FrozenModel
from kernel.language import gettext_lazy as _
from kernel.stored_texts import stored_text


class PermissionBody(FrozenModel):
    connection_name: Line
    reason: Annotated[str, Field(min_length=1, max_length=500)]


class PermissionEscalation(Kind):
    kind = CardKind.PERMISSION_ESCALATION
    label = _("More access")
    payload = RightsPayload
    body = PermissionBody
    scopes = frozenset({ApprovalScope.CONNECTION_MANAGE})
    choices = (APPROVAL, Choice("just_this_once", ApprovalVerdict.APPROVED, stored_text("Just this once")), REJECTION)

    def base_risk(self, payload: Mapping[str, Any]) -> Risk | None:
        return access_risk(payload["before"], payload["after"])
